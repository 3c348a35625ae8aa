package ledger

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limen-gateway/limen/internal/budget"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/money"
	"github.com/limen-gateway/limen/internal/store"
)

var (
	seeds = flag.Uint64("seeds", worlds, "worlds of the simulation")
	first = flag.Uint64("seed", 0, "the first world of the simulation")
)

// TestSimulation has gateways that share a store make calls that pay from
// budgets, while gateways are killed and started, clocks are set, the store is
// away and its answers are lost. At every moment:
//
//   - what was spent and is held is within the limit, in every window
//   - the store has spent and leased no more than the limit, and its sums agree
//     with its calls and leases
//   - no gateway holds or has spent more than its lease
//   - a call is recorded as it ended; as interrupted, at its estimate, only when
//     its gateway was killed; never twice
//
// In the end, when all is well again, all calls are recorded and all leases are
// back within a minute.
func TestSimulation(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 20)
	}
	for seed := *first; seed < *first+n && !t.Failed(); seed++ {
		simulate(t, seed)
	}
}

// world is gateways and what truly happens.
type world struct {
	t    *testing.T
	seed uint64

	base     string // of directories
	store    *store.Store
	db       *sql.DB // the same
	alone    bool
	exact    bool // no call costs more than it holds
	patient  bool // nobody changes limits
	gateways []*gateway
	calls    sync.WaitGroup

	mu       sync.Mutex
	rnd      *rand.Rand
	away     time.Time // until then the store does not answer
	lost     float64   // of the store's answers
	slow     float64   // of them take longer than calls wait
	budgets  map[string][]budget.Budget
	bound    map[account]money.Amount // the greatest limit there was
	tallies  map[store.Balance]*tally
	expected map[string]*expected
	made     int
	served   int
	refused  map[llm.Kind]int
}

type account struct{ owner, period string }

// tally is what is true of a balance.
type tally struct {
	sum    money.Amount // spent, and held by calls that may spend it
	excess money.Amount // spent beyond what was held
}

// expected is what is to become of a call.
type expected struct {
	of        *life
	holder    string
	balances  []store.Balance
	held      money.Amount
	estimate  money.Amount // as it is in the journal
	journaled bool
	ended     bool
	charge    money.Amount
}

// gateway is a data directory and the clock of its machine.
type gateway struct {
	world *world
	dir   string
	skew  time.Duration
	up    time.Time // when it is started again
	life  *life     // nil while it is down
}

// life is a process.
type life struct {
	gateway *gateway
	dead    atomic.Bool
	books   *budget.Books
	ledger  *Ledger
	payers  []*budget.Payer
	stop    func()
	calls   sync.WaitGroup
}

// keysOfWorld are the owners of budgets below the team "t".
var keysOfWorld = []string{"a", "b", "c"}

func simulate(t *testing.T, seed uint64) {
	base, err := os.MkdirTemp(memory(), "limen-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, base)
		defer w.store.Close()
		defer w.db.Close()
		w.run()
		w.end()
		if t.Failed() || testing.Verbose() {
			t.Logf("seed %d: %d gateways, alone %v, exact %v, patient %v; %d of %d calls were served, refused were %v",
				seed, len(w.gateways), w.alone, w.exact, w.patient, w.served, w.made, w.refused)
		}
	})
}

// memory is a directory whose files need no disk, where there is one.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

func newWorld(t *testing.T, seed uint64, base string) *world {
	rnd := rand.New(rand.NewPCG(seed, 11))
	w := &world{
		t: t, seed: seed, base: base, rnd: rnd, exact: rnd.IntN(4) > 0, patient: rnd.IntN(3) > 0,
		budgets: map[string][]budget.Budget{}, bound: map[account]money.Amount{}, tallies: map[store.Balance]*tally{},
		expected: map[string]*expected{}, refused: map[llm.Kind]int{},
	}
	var err error
	if w.store, err = store.Open(t.Context(), base, ""); err != nil {
		t.Fatal(err)
	}
	if w.db, err = sql.Open("sqlite", filepath.Join(base, store.FileName)); err != nil {
		t.Fatal(err)
	}
	n := 1 + rnd.IntN(3)
	w.alone = n == 1 && rnd.IntN(2) == 0
	for i := range n {
		g := &gateway{world: w, dir: filepath.Join(base, fmt.Sprint("g", i)), skew: time.Duration(rnd.IntN(5)) * time.Hour}
		if err := os.Mkdir(g.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		w.gateways = append(w.gateways, g)
	}
	for _, owner := range append(slices.Clone(keysOfWorld), "t") {
		for _, period := range [][]budget.Budget{
			{{Period: budget.Total}}, {{Period: budget.Day}}, {{Period: budget.Day, Zone: "Pacific/Auckland"}, {Period: budget.Total}}, {{Period: budget.Total, Soft: true}},
		}[rnd.IntN(4)] {
			period.Amount = money.Amount(20 + rnd.IntN([]int{100, 1000}[rnd.IntN(2)]))
			w.budgets[owner] = append(w.budgets[owner], period)
		}
		w.boundOf(owner)
	}
	return w
}

// boundOf notes the limits of an owner.
func (w *world) boundOf(owner string) {
	for _, b := range w.budgets[owner] {
		if at := (account{owner, keyOf(b)}); !b.Soft {
			w.bound[at] = max(w.bound[at], b.Amount)
		}
	}
}

// keyOf is the period of a budget as balances have it.
func keyOf(b budget.Budget) string {
	_, period, _ := strings.Cut(strings.TrimSuffix(b.String(), " soft"), "/")
	return period
}

func (w *world) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rnd.IntN(n)
}

func (w *world) chance(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rnd.Float64() < p
}

// nap passes a time of up to most.
func (w *world) nap(most time.Duration) { time.Sleep(time.Duration(w.pick(int(most)))) }

func (w *world) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// run is the time of faults.
func (w *world) run() {
	for _, g := range w.gateways {
		g.start()
	}
	for range 60 {
		w.step()
		w.nap(1500 * time.Millisecond)
		for _, g := range w.gateways {
			if g.life == nil && !time.Now().Before(g.up) {
				g.start()
			}
		}
		synctest.Wait()
		w.check()
		if w.t.Failed() {
			return
		}
	}
}

func (w *world) step() {
	g := w.gateways[w.pick(len(w.gateways))]
	switch n := w.pick(24); {
	case n < 12:
		for range 1 + w.pick(4) {
			g.begin()
		}
	case n < 13: // a crowd
		for range 20 {
			g.begin()
		}
	case n < 15:
		w.nap(20 * time.Second)
	case n < 17:
		if g.life != nil {
			g.kill()
			g.up = time.Now().Add([]time.Duration{0, time.Second, 30 * time.Second, 100 * time.Second}[w.pick(4)])
		}
	case n < 18:
		if g.life != nil {
			g.close()
			g.up = time.Now()
		}
	case n < 20:
		g.skew += []time.Duration{-time.Second, time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour, -3 * time.Minute}[w.pick(6)]
	case n < 21:
		d := []time.Duration{time.Second, time.Second, 5 * time.Second, 90 * time.Second}[w.pick(4)]
		w.mu.Lock()
		w.away = time.Now().Add(d)
		w.mu.Unlock()
	case n < 23:
		w.mu.Lock()
		w.lost, w.slow = []float64{0, 0, 0.1, 0.5}[w.rnd.IntN(4)], []float64{0, 0, 0.05, 0.2}[w.rnd.IntN(4)]
		w.mu.Unlock()
	case !w.patient:
		owner := append(slices.Clone(keysOfWorld), "t")[w.pick(4)]
		for i := range w.budgets[owner] {
			w.budgets[owner][i].Amount = money.Amount(w.pick(800))
		}
		w.boundOf(owner)
		for _, g := range w.gateways {
			if g.life != nil && w.pick(4) > 0 { // some have not heard yet
				g.life.pay()
			}
		}
	}
}

// start starts a process, again and again until it comes up.
func (g *gateway) start() {
	w := g.world
	for {
		l := &life{gateway: g}
		l.books = budget.NewBooks(&flaky{w.store, l}, filepath.Base(g.dir), w.alone, slog.New(slog.DiscardHandler))
		if err := l.books.Start(w.t.Context()); err != nil {
			time.Sleep(time.Second)
			continue
		}
		var err error
		if l.ledger, err = Open(g.dir, l.books, slog.New(slog.DiscardHandler)); err != nil {
			w.t.Fatal(err)
		}
		l.ledger.journal.segment = 2000 // so that holds move
		l.ledger.Drain(w.t.Context())
		l.pay()
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { l.ledger.Run(ctx) })
		running.Go(func() { l.books.Run(ctx, func(budget.Alert) {}) })
		l.stop = func() { cancel(); running.Wait() }
		g.life = l
		return
	}
}

// pay makes the payers of the budgets as they are.
func (l *life) pay() {
	w := l.gateway.world
	team := l.books.Payer("t", "team t", w.budgets["t"], nil)
	l.payers = nil
	for _, key := range keysOfWorld {
		l.payers = append(l.payers, l.books.Payer(key, "key "+key, w.budgets[key], team))
	}
}

// kill ends a process as kill -9 does: what it has begun at the store may
// happen, and it does not hear of it.
func (g *gateway) kill() {
	l := g.life
	g.life = nil
	synctest.Wait()
	l.dead.Store(true)
	g.world.abandon(l)
	l.stop()
	if err := l.ledger.journal.close(); err != nil {
		g.world.t.Error(err)
	}
}

// close ends a process as it should be.
func (g *gateway) close() {
	l := g.life
	g.life = nil
	l.calls.Wait()
	l.stop()
	err := errors.Join(l.ledger.Close(context.Background()), l.books.Close(context.Background()))
	l.dead.Store(true)
	g.world.abandon(l)
	g.world.mu.Lock()
	defer g.world.mu.Unlock()
	if err != nil && g.world.lost == 0 && g.world.slow == 0 && time.Now().After(g.world.away.Add(time.Minute)) {
		g.world.errorf("a gateway did not end well: %v", err)
	}
}

// begin has a client make a call.
func (g *gateway) begin() {
	w, l := g.world, g.life
	if l == nil {
		return
	}
	w.made++
	id := fmt.Sprintf("%05d", w.made)
	payer := l.payers[w.pick(len(l.payers))]
	l.calls.Add(1)
	w.calls.Go(func() {
		defer l.calls.Done()
		l.call(id, payer)
	})
}

// call is the way of a call. A process that is dead does nothing more of it.
func (l *life) call(id string, payer *budget.Payer) {
	w := l.gateway.world
	amount := money.Amount(1 + w.pick(20))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.pick(10) == 0 { // the client leaves early
		ctx, cancel = context.WithTimeout(ctx, time.Duration(w.pick(int(time.Second))))
		defer cancel()
	}
	h, err := payer.Hold(ctx, amount, time.Now().Add(l.gateway.skew))
	if l.dead.Load() {
		return
	}
	if err != nil {
		w.refuse(err)
		return
	}
	c := newCall(id)
	c.Balances = h.Balances()
	if !h.Active() {
		amount = 0
	}
	w.hold(l, id, h.Balances(), amount)
	if w.nap(time.Second); l.dead.Load() {
		return
	}
	if h.Active() {
		if err := l.ledger.Hold(c, amount); err != nil {
			w.errorf("the journal: %v", err)
		}
	}
	w.note(id, func(e *expected) { e.journaled, e.estimate = h.Active(), amount })
	if w.nap([]time.Duration{time.Second, 10 * time.Second, 100 * time.Second}[w.pick(3)]); l.dead.Load() {
		return
	}
	if more := money.Amount(w.pick(10)); h.Active() && more > 7 {
		err := h.More(more)
		if l.dead.Load() {
			return
		}
		if err == nil {
			amount += more
			w.more(id, more)
			if w.nap(time.Second); l.dead.Load() {
				return
			}
			if err := l.ledger.Hold(c, amount); err != nil {
				w.errorf("the journal: %v", err)
			}
			w.note(id, func(e *expected) { e.estimate = amount })
		}
	}
	if w.nap(2 * time.Second); l.dead.Load() {
		return
	}
	c.Charge = money.Amount(w.pick(int(amount) + 1))
	if !w.exact && w.pick(5) == 0 {
		c.Charge += money.Amount(w.pick(30))
	}
	if err := l.ledger.Append(c); err != nil {
		w.errorf("the journal: %v", err)
	}
	w.ended(id, c.Charge)
	if w.nap(time.Second); l.dead.Load() {
		return
	}
	h.Settle(c.Charge)
}

func (w *world) refuse(err error) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || !slices.Contains([]llm.Kind{llm.OverBudget, llm.Unavailable, llm.Canceled}, e.Kind) {
		w.errorf("a call was refused with %v", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[e.Kind]++
}

// add changes what is true of the hard budgets of a call, and looks whether it
// may be; mu is held.
func (w *world) add(e *expected, n, excess money.Amount) {
	for _, b := range e.balances {
		bound, hard := w.bound[account{b.Owner, b.Period}]
		at := w.tallies[b]
		if at == nil {
			at = &tally{}
			w.tallies[b] = at
		}
		at.sum += n
		at.excess += excess
		if hard && at.sum > bound+at.excess {
			w.errorf("of %v are spent and held %d, with %d more than was held; the limit is %d", b, at.sum, at.excess, bound)
		}
	}
}

func (w *world) hold(l *life, id, balances string, amount money.Amount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served++
	e := &expected{of: l, held: amount}
	e.holder, e.balances = store.DecodeBalances(balances)
	w.expected[id] = e
	w.add(e, amount, 0)
}

func (w *world) more(id string, n money.Amount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected[id].held += n
	w.add(w.expected[id], n, 0)
}

func (w *world) note(id string, change func(*expected)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w.expected[id])
}

func (w *world) ended(id string, charge money.Amount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.expected[id]
	e.ended, e.charge = true, charge
	w.add(e, charge-e.held, max(0, charge-e.held))
}

// abandon settles what is true of the calls of a process that is gone.
func (w *world) abandon(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, e := range w.expected {
		switch {
		case e.of != l || e.ended:
		case e.journaled: // will be interrupted
			w.add(e, e.estimate-e.held, 0)
			e.held = e.estimate
		default: // nobody was asked anything
			w.add(e, -e.held, 0)
			delete(w.expected, id)
		}
	}
}

// check compares the store with what is true. Nothing moves meanwhile.
func (w *world) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, err := w.store.Calls(w.t.Context(), store.CallFilter{}, "", 1<<30)
	if err != nil {
		w.t.Fatal(err)
	}
	spent := map[store.Balance]money.Amount{}
	stored := map[string]bool{}
	for _, c := range rows {
		e := w.expected[c.ID]
		stored[c.ID] = true
		switch {
		case e == nil:
			w.errorf("call %s is recorded, and was never made", c.ID)
			continue
		case e.ended && (c.Error != "" || c.Charge != e.charge):
			w.errorf("call %s is recorded with %q at %d; it ended well at %d", c.ID, c.Error, c.Charge, e.charge)
		case !e.ended && (!e.of.dead.Load() || c.Error != interrupted || c.Charge != e.estimate || !c.Usage.Estimated):
			w.errorf("call %s is recorded with %q at %d; it was interrupted (%v) at %d", c.ID, c.Error, c.Charge, e.of.dead.Load(), e.estimate)
		}
		for _, b := range e.balances {
			spent[b] += c.Charge
		}
	}
	leases := w.leases()
	leased, counted := map[store.Balance]money.Amount{}, map[store.Balance]money.Amount{}
	for h, l := range leases {
		if l[0] < 0 || l[1] < 0 {
			w.errorf("the lease %v has %d and %d", h, l[0], l[1])
		}
		leased[h.Balance] += l[0]
		counted[h.Balance] += l[1]
	}
	for b := range w.tallies {
		at, err := w.store.Standing(w.t.Context(), b)
		if err != nil {
			w.t.Fatal(err)
		}
		if at.Leased != leased[b] || at.Spent != spent[b]+counted[b] {
			w.errorf("%v has spent %d and leased %d; its calls cost %d, its leases are %d and %d", b, at.Spent, at.Leased, spent[b], leased[b], counted[b])
		}
		if bound, hard := w.bound[account{b.Owner, b.Period}]; hard && at.Spent+at.Leased > bound+w.tallies[b].excess {
			w.errorf("%v has spent %d and leased %d of %d, with %d beyond what was held", b, at.Spent, at.Leased, bound, w.tallies[b].excess)
		}
	}
	w.checkLeases(stored, leases)
}

// leases are all rows of leases: the amount, and what was interrupted.
func (w *world) leases() map[store.Holding][2]money.Amount {
	rows, err := w.db.Query("SELECT holder, owner, period, window_ms, amount, interrupted FROM leases")
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	all := map[store.Holding][2]money.Amount{}
	for rows.Next() {
		var h store.Holding
		var l [2]money.Amount
		if err := rows.Scan(&h.Holder, &h.Owner, &h.Period, &h.Window, &l[0], &l[1]); err != nil {
			w.t.Fatal(err)
		}
		all[h] = l
	}
	return all
}

// checkLeases looks whether what gateways hold, and have spent without the
// store knowing, is leased; mu is held.
func (w *world) checkLeases(stored map[string]bool, leases map[store.Holding][2]money.Amount) {
	due := map[store.Holding]money.Amount{}
	for id, e := range w.expected {
		if stored[id] {
			continue
		}
		for _, b := range e.balances {
			if _, hard := w.bound[account{b.Owner, b.Period}]; !hard {
				continue
			}
			n := e.held
			if e.ended {
				n = e.charge
			}
			due[store.Holding{Holder: e.holder, Balance: b}] += n
		}
	}
	for h, n := range due {
		l := leases[h]
		if n > l[0]+l[1]+w.tallies[h.Balance].excess {
			w.errorf("%v holds and has spent %d; its lease is %d, and %d that was interrupted", h, n, l[0], l[1])
		}
	}
}

// end is the time after the faults.
func (w *world) end() {
	if w.t.Failed() {
		for _, g := range w.gateways {
			if g.life != nil {
				g.kill()
			}
		}
		w.calls.Wait()
		return
	}
	w.mu.Lock()
	w.away, w.lost, w.slow = time.Time{}, 0, 0
	w.mu.Unlock()
	missing := w.pick(2) == 0 && len(w.gateways) > 1 // one is not started again yet
	for i, g := range w.gateways {
		if g.life == nil && (i > 0 || !missing) {
			g.start()
		}
	}
	w.calls.Wait()
	time.Sleep(leaseOver)
	w.check()
	if !w.alone {
		w.checkReturned()
	}
	for _, g := range w.gateways {
		if g.life == nil {
			g.start()
		}
	}
	time.Sleep(time.Minute)
	for _, g := range w.gateways {
		g.close()
	}
	w.check()
	w.checkReturned()
	w.checkWhole()
}

// leaseOver is when what a gateway that is gone had leased is not leased any
// more: a minute, and until somebody looks.
const leaseOver = 75 * time.Second

func (w *world) checkReturned() {
	for b := range w.tallies {
		if at, err := w.store.Standing(w.t.Context(), b); err != nil || at.Leased != 0 {
			w.errorf("of %v are leased %d in the end, %v", b, at.Leased, err)
		}
	}
}

// checkWhole looks whether everything is over and nothing is missing.
func (w *world) checkWhole() {
	if leases := w.leases(); len(leases) > 0 {
		w.errorf("leases are left: %v", leases)
	}
	for id, e := range w.expected {
		if _, err := w.store.Call(w.t.Context(), id); err != nil {
			w.errorf("call %s is not recorded (%+v): %v", id, e, err)
		}
	}
	for b, at := range w.tallies {
		stands, err := w.store.Standing(w.t.Context(), b)
		if err != nil || stands.Spent != at.sum {
			w.errorf("of %v are spent %d, %v, want %d", b, stands.Spent, err, at.sum)
		}
	}
	for _, g := range w.gateways {
		if files, err := filepath.Glob(filepath.Join(g.dir, "journal", "*")); err != nil || len(files) > 0 {
			w.errorf("files are left: %v, %v", files, err)
		}
	}
}

// flaky is the store as a process sees it.
type flaky struct {
	*store.Store
	of *life
}

var errAway = errors.New("the store is away")

// pass is the way to the store or back.
func (f *flaky) pass(ctx context.Context) error {
	w := f.of.gateway.world
	d := time.Duration(w.pick(int(20 * time.Millisecond)))
	w.mu.Lock()
	slow := w.slow
	w.mu.Unlock()
	if w.chance(slow) {
		d = 3 * time.Second
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.of.dead.Load() || time.Now().Before(w.away) {
		return errAway
	}
	return nil
}

// ask does something at the store. It may have been done when it fails.
func (f *flaky) ask(ctx context.Context, do func() error) error {
	if err := f.pass(ctx); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	w := f.of.gateway.world
	w.mu.Lock()
	lost := w.lost
	w.mu.Unlock()
	if w.chance(lost) {
		return errAway
	}
	return f.pass(ctx)
}

func (f *flaky) AddCalls(ctx context.Context, calls []store.Call) error {
	return f.ask(ctx, func() error { return f.Store.AddCalls(ctx, calls) })
}

func (f *flaky) TakeLease(ctx context.Context, holder string, b store.Balance, limit money.Amount, choose func(money.Amount) money.Amount) (taken store.Lease, err error) {
	err = f.ask(ctx, func() (err error) {
		taken, err = f.Store.TakeLease(ctx, holder, b, limit, choose)
		return err
	})
	return taken, err
}

func (f *flaky) ReturnLease(ctx context.Context, holder string, b store.Balance, n money.Amount) error {
	return f.ask(ctx, func() error { return f.Store.ReturnLease(ctx, holder, b, n) })
}

func (f *flaky) CloseLeases(ctx context.Context, list ...store.Holding) error {
	return f.ask(ctx, func() error { return f.Store.CloseLeases(ctx, list...) })
}

func (f *flaky) FormerLeases(ctx context.Context, node, holder string) (list []store.Holding, err error) {
	err = f.ask(ctx, func() (err error) {
		list, err = f.Store.FormerLeases(ctx, node, holder)
		return err
	})
	return list, err
}

func (f *flaky) InterruptLeases(ctx context.Context, silence time.Duration) (n int, err error) {
	err = f.ask(ctx, func() (err error) {
		n, err = f.Store.InterruptLeases(ctx, silence)
		return err
	})
	return n, err
}

func (f *flaky) Beat(ctx context.Context, node string, within time.Duration) (n int, err error) {
	err = f.ask(ctx, func() (err error) {
		n, err = f.Store.Beat(ctx, node, within)
		return err
	})
	return n, err
}

func (f *flaky) ForgetNode(ctx context.Context, node string) error {
	return f.ask(ctx, func() error { return f.Store.ForgetNode(ctx, node) })
}

func (f *flaky) Standing(ctx context.Context, b store.Balance) (at store.Standing, err error) {
	err = f.ask(ctx, func() (err error) {
		at, err = f.Store.Standing(ctx, b)
		return err
	})
	return at, err
}

func (f *flaky) RaiseAlert(ctx context.Context, b store.Balance, amount money.Amount) (first bool, err error) {
	err = f.ask(ctx, func() (err error) {
		first, err = f.Store.RaiseAlert(ctx, b, amount)
		return err
	})
	return first, err
}

func (f *flaky) ForgetBalances(ctx context.Context, before time.Time) error {
	return f.ask(ctx, func() error { return f.Store.ForgetBalances(ctx, before) })
}
