package route

import (
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// choose finds the target for the next attempt and claims it; -1 when there is
// none. at is now.
func (p *Plan) choose(at int64, first bool) (int, claimed) {
	var places, others [inPlace]int
	good, half := p.sort(at, places[:0], others[:0])
	good, half = p.prefer(good, half)
	if len(half) > 0 && len(good) > 0 && !(first && p.room(at)) {
		half = nil // no call is risked for a probe that another could not make good
	}
	key, home := p.home(at)
	settled := slices.Contains(good, home)
	if i, probe, ok := p.probe(half, home, settled, at); ok {
		return i, probe
	}
	if settled {
		return home, p.claim(home, at)
	}
	if len(good) > 0 {
		return p.place(good, key, home, first, at)
	}
	return p.lastResort(at), claimed{}
}

// sort finds the targets that are well and those that a call may probe, and
// notes why the others are left out.
func (p *Plan) sort(at int64, good, half []int) (_, _ []int) {
	reasons := p.reasons()
	for i := range p.model.Targets {
		if !p.open(i) {
			continue
		}
		reasons[i] = reason{}
		switch s, _, wait := p.model.Targets[i].Health.state(at); s {
		case well:
			good = append(good, i)
		case halfOpen:
			half = append(half, i)
		case probing:
			reasons[i].why = probed
		default:
			reasons[i] = reason{sick, uint16(wholeSeconds(wait))}
		}
	}
	return good, half
}

// prefer keeps those that the request's state is bound to, if any is well, and
// of those the ones that the model's order puts first.
func (p *Plan) prefer(good, half []int) (_, _ []int) {
	targets := p.model.Targets
	if len(p.query.Origin) > 0 {
		foreign := func(i int) bool { return !p.query.binds(&targets[i]) }
		if !slices.ContainsFunc(good, func(i int) bool { return !foreign(i) }) {
			foreign = func(int) bool { return false }
		}
		good, half = slices.DeleteFunc(good, foreign), slices.DeleteFunc(half, foreign)
	}
	tier := math.MaxInt
	for _, i := range good {
		tier = min(tier, targets[i].Tier)
	}
	later := func(i int) bool { return targets[i].Tier > tier }
	return slices.DeleteFunc(good, later), slices.DeleteFunc(half, later)
}

// home is the conversation's key, and the target that it was with; -1 when that
// is not known. A call that belongs to none has a key at random.
func (p *Plan) home(at int64) (key uint64, target int) {
	if !p.sticks() {
		return p.router.dice(), -1
	}
	key = mix(p.query.Sticky ^ p.model.seed)
	if h := p.router.sticky.find(key, at); h != nil {
		return key, slices.IndexFunc(p.model.Targets, func(t Target) bool { return t.Health == h })
	}
	return key, -1
}

func (p *Plan) sticks() bool {
	return p.model.Affinity && p.query.Sticky != 0 && len(p.model.Targets) > 1
}

// probe takes a call to find out whether a target still is sick. A conversation
// that is settled elsewhere is not taken for it, unless none other came by.
func (p *Plan) probe(half []int, home int, settled bool, at int64) (int, claimed, bool) {
	if slices.Contains(half, home) {
		half = []int{home}
	}
	var start uint64
	if len(half) > 1 {
		start = p.router.dice() % uint64(len(half))
	}
	for n := range half {
		i := half[(n+int(start))%len(half)]
		h := p.model.Targets[i].Health
		if _, since, _ := h.state(at); settled && since < overdue {
			continue
		}
		if probe, ok := h.claim(at); ok {
			return i, probe, true
		}
	}
	return 0, claimed{}, false
}

// claim takes a target that was well a moment ago.
func (p *Plan) claim(i int, at int64) claimed {
	h := p.model.Targets[i].Health
	probe, ok := h.claim(at)
	if !ok {
		h.take(at)
	}
	return probe
}

// place finds a target for a call that is settled nowhere. Its conversation
// stays there, unless it was only turned away once by one that is well.
func (p *Plan) place(good []int, key uint64, home int, first bool, at int64) (int, claimed) {
	i := p.pick(good, at, key, p.sticks())
	if p.sticks() && (first || home < 0 || !p.model.Targets[home].Health.well()) {
		p.router.sticky.put(key, p.model.Targets[i].Health, at)
	}
	return i, p.claim(i, at)
}

// lastResort tries the same target once more where all others are out, and
// else the one that is least sick. One that asked to be left alone is, unless
// the model has no other: then its own answer is better than one of ours.
func (p *Plan) lastResort(at int64) int {
	if i := p.secondTry(at); i >= 0 {
		return i
	}
	best, least := -1, int64(math.MaxInt64)
	for i := range p.model.Targets {
		if !p.open(i) {
			continue
		}
		s, _, wait := p.model.Targets[i].Health.state(at)
		if (s != waiting || len(p.model.Targets) == 1) && int64(wait) < least {
			best, least = i, int64(wait)
		}
	}
	if best >= 0 {
		p.model.Targets[best].Health.take(at)
	}
	return best
}

// secondTry is the target of the last attempt, if its failure allows another
// and it had none; -1 otherwise.
func (p *Plan) secondTry(at int64) int {
	if p.tried == 0 || !p.again {
		return -1
	}
	i, n := p.try(p.tried-1).target, 0
	for k := range p.tried {
		if p.try(k).target == i {
			n++
		}
	}
	h := p.model.Targets[i].Health
	if s, _, _ := h.state(at); n > 1 || s == waiting {
		return -1
	}
	h.take(at)
	return i
}

// wellOnes adds the targets that could be tried now.
func (p *Plan) wellOnes(list []int) []int {
	for i := range p.model.Targets {
		if p.open(i) && p.model.Targets[i].Health.well() {
			list = append(list, i)
		}
	}
	list, _ = p.prefer(list, nil)
	return list
}

// pick is the model's strategy. Those that are as good share by weight: the
// same key goes to the same target, on every replica.
func (p *Plan) pick(good []int, at int64, key uint64, bounded bool) int {
	if p.model.Strategy >= Latency && len(good) > 1 {
		good = p.best(good, at)
	}
	return p.race(good, key, bounded)
}

// best keeps the targets that the strategy finds best.
func (p *Plan) best(good []int, at int64) []int {
	var places [inPlace]float64
	scores, least := places[:0], math.Inf(1)
	for _, i := range good {
		s := p.score(&p.model.Targets[i], at)
		scores = append(scores, s)
		least = min(least, s)
	}
	kept := good[:0]
	for n, i := range good {
		if scores[n] == least {
			kept = append(kept, i)
		}
	}
	return kept
}

// score is how a strategy sees a target: the less, the better.
func (p *Plan) score(t *Target, at int64) float64 {
	busy := t.Health.inFlight.Load()
	switch p.model.Strategy {
	case Latency:
		return t.Health.first.expected(at, busy > 0)
	case Busy:
		return float64(busy) / t.Weight
	}
	return p.query.price(t, at)
}

// usualAnswer is how long an answer is taken to be, in tokens, where prices are
// compared.
const usualAnswer = 500

// price is about what the call costs there. What has no price is the dearest.
func (q *Query) price(t *Target, at int64) float64 {
	rates := t.Price.At(time.Unix(0, at)).For(q.Tokens)
	in, known := rates.Input.Pico()
	out, too := rates.Output.Pico()
	if !known || !too {
		return math.Inf(1)
	}
	answer := int64(usualAnswer)
	if q.MaxOutput > 0 {
		answer = min(answer, q.MaxOutput)
	}
	return float64(in)*float64(max(q.Tokens, answer)) + float64(out)*float64(answer)
}

// leeway is by how much a target may have more conversations than its share.
const leeway = 1.08

// race is weighted rendezvous hashing: each target draws a number from the
// key, and the least by weight wins. Bounded, one that has too many
// conversations already does not take part.
func (p *Plan) race(good []int, key uint64, bounded bool) int {
	if len(good) == 1 {
		return good[0]
	}
	share := math.Inf(1) // of conversations, by weight
	if bounded {
		held, weights := 1.0, 0.0
		for _, i := range good {
			held += float64(p.model.Targets[i].Health.held.Load())
			weights += p.model.Targets[i].Weight
		}
		share = leeway * held / weights
	}
	best, least := -1, math.Inf(1)
	for _, i := range good {
		t := &p.model.Targets[i]
		if bounded && float64(t.Health.held.Load()) >= max(math.Floor(share*t.Weight), 1) {
			continue
		}
		drawn := float64(mix(key^t.Health.id)>>11+1) / (1<<53 + 1)
		if d := -math.Log(drawn) / t.Weight; d < least {
			best, least = i, d
		}
	}
	if best < 0 { // all are full, by rounding or since another call was faster
		return p.race(good, key, false)
	}
	return best
}

// mix spreads the bits of a number (SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return mix(h.Sum64())
}
