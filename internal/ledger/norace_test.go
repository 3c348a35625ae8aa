//go:build !race

package ledger

// worlds are how many are simulated.
const worlds = 200
