package budget

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

// Bank is what books need of the store. AddCalls must be able to come twice with
// the same calls, and all others may have been done when they fail.
type Bank interface {
	AddCalls(ctx context.Context, calls []store.Call) error
	TakeLease(ctx context.Context, holder string, b store.Balance, limit money.Amount, choose func(left money.Amount) money.Amount) (store.Lease, error)
	ReturnLease(ctx context.Context, holder string, b store.Balance, n money.Amount) error
	CloseLeases(ctx context.Context, list ...store.Holding) error
	FormerLeases(ctx context.Context, node, holder string) ([]store.Holding, error)
	InterruptLeases(ctx context.Context, silence time.Duration) (int, error)
	Beat(ctx context.Context, node string, within time.Duration) (int, error)
	ForgetNode(ctx context.Context, node string) error
	Standing(ctx context.Context, b store.Balance) (store.Standing, error)
	RaiseAlert(ctx context.Context, b store.Balance, amount money.Amount) (bool, error)
	ForgetBalances(ctx context.Context, before time.Time) error
}

// Books are the budgets of all payers, and what this gateway has leased of
// them. They are safe for concurrent use.
type Books struct {
	bank   Bank
	node   string // begins the names of all holders of the data directory
	holder string // this process
	alone  bool   // no other process has the store
	log    *slog.Logger
	born   time.Time

	heard atomic.Int64 // when the store last heard of this process, by since
	nodes atomic.Int64 // that share the store
	ready atomic.Bool  // what former processes had leased is given back

	mu       sync.Mutex
	accounts map[accountName]*account
	leases   map[store.Balance]*lease
	touched  map[store.Balance]bool // that something was booked to and nobody looked at since
	made     uint64                 // leases, ever

	starting sync.Mutex // of work
	closed   bool
	work     sync.WaitGroup // with the store, for leases
}

const (
	// leaseTime is how long leases last when nothing is heard of their holder.
	leaseTime = 60 * time.Second
	// fenceTime is when a holder that is not heard takes its leases for over:
	// before others do.
	fenceTime = 45 * time.Second
	// beatEvery is how often the store hears of a holder.
	beatEvery = 5 * time.Second
	// aliveTime is how long a gateway counts as there.
	aliveTime = 20 * time.Second
)

// NewBooks opens the books. node names the data directory, for as long as it is
// there; alone says that no other process has the store. Start and CloseFormer have to follow.
func NewBooks(bank Bank, node string, alone bool, log *slog.Logger) *Books {
	b := &Books{
		bank: bank, node: node + "-", alone: alone, log: log, born: time.Now(),
		accounts: map[accountName]*account{}, leases: map[store.Balance]*lease{}, touched: map[store.Balance]bool{},
	}
	b.holder = b.node + rand.Text()
	b.heard.Store(-int64(leaseTime))
	b.nodes.Store(1)
	return b
}

// since is a clock that nobody sets.
func (b *Books) since() time.Duration { return time.Since(b.born) }

// Start has the store hear of this process, which makes its leases count.
func (b *Books) Start(ctx context.Context) error { return b.beat(ctx) }

// CloseFormer gives back the leases of former processes of the data directory.
// All calls in their journal have to be in the store. Until it went well once,
// no call is told that a budget has not enough left.
func (b *Books) CloseFormer(ctx context.Context) error {
	node := b.node
	if b.alone {
		node = "" // nobody else is there
	}
	former, err := b.bank.FormerLeases(ctx, node, b.holder)
	if err != nil {
		return err
	}
	if err := b.bank.CloseLeases(ctx, former...); err != nil {
		return err
	}
	b.ready.Store(true)
	return nil
}

// beat tells the store that this process is there.
func (b *Books) beat(ctx context.Context) error {
	if b.alone {
		return nil
	}
	began := b.since()
	n, err := b.bank.Beat(ctx, b.holder, aliveTime)
	if err != nil {
		return err
	}
	b.heard.Store(int64(began))
	b.nodes.Store(int64(max(n, 1)))
	return nil
}

// fenced reports whether the store has not heard of this process for so long
// that its leases may be over.
func (b *Books) fenced() bool {
	return !b.alone && b.since()-time.Duration(b.heard.Load()) >= fenceTime
}

// Nodes is how many gateways share the store, this one among them.
func (b *Books) Nodes() int { return int(b.nodes.Load()) }

// accountName names an account: budgets of one owner that begin anew together
// count together.
type accountName struct{ owner, period string }

// account is what an owner may spend in every window of a period. It outlives
// the payers that are made of snapshots.
type account struct {
	name   string // of the owner
	budget Budget // the hard one; its Amount is the least of them
	hard   bool
	soft   []Budget
}

// thresholds are the amounts that are alerted of, and the budgets they are of.
func (a *account) thresholds() []threshold {
	var list []threshold
	for _, b := range a.soft {
		list = append(list, threshold{b, b.Amount})
	}
	if a.hard {
		most := a.budget.Amount
		list = append(list, threshold{a.budget, most/5*4 + most%5*4/5}, threshold{a.budget, most})
	}
	return slices.DeleteFunc(list, func(t threshold) bool { return t.amount <= 0 })
}

// threshold is an amount that is alerted of.
type threshold struct {
	budget Budget
	amount money.Amount
}

// AddCalls stores records of calls, and books what they charge. When it returns
// nil, all of them are in the store.
func (b *Books) AddCalls(ctx context.Context, calls []store.Call) error {
	if err := b.bank.AddCalls(ctx, calls); err != nil {
		return err
	}
	counts := map[string]int{}
	for i := range calls {
		if calls[i].Charge > 0 && calls[i].Balances != "" {
			counts[calls[i].Balances]++
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for text, n := range counts {
		b.booked(text, n)
	}
	return nil
}

// booked notes that the charges of n calls, which name their balances by text,
// are in the store; b.mu is held.
func (b *Books) booked(text string, n int) {
	holder, balances := store.DecodeBalances(text)
	for _, balance := range balances {
		b.touched[balance] = true
		if l := b.leases[balance]; l != nil && holder == b.holder {
			l.mu.Lock()
			l.unbooked -= n
			l.moves++
			l.mu.Unlock()
		}
	}
}
