//go:build race

package ledger

// worlds are how many are simulated: with the race detector each takes six
// times as long.
const worlds = 30
