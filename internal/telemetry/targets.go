package telemetry

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"
)

// Target is how it stands with a model of a provider, at one of its accounts.
type Target struct {
	Provider, Account, Model string
	Available                bool // calls go to it; else it is left alone, or tried now and then
	InFlight                 int64
}

// targets tells of targets when metrics are asked for.
type targets struct{ list func() iter.Seq[Target] }

var (
	targetLabels    = []string{"gen_ai_provider_name", "limen_account", "gen_ai_response_model"}
	targetAvailable = prometheus.NewDesc("limen_target_available", "Whether calls go to an upstream's model at an account: 0 while it is left alone because it failed or asked for it.", targetLabels, nil)
	targetInFlight  = prometheus.NewDesc("limen_target_in_flight", "Calls under way to an upstream's model at an account.", targetLabels, nil)
)

// Describe implements [prometheus.Collector].
func (targets) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- targetAvailable
	descriptions <- targetInFlight
}

// Collect implements [prometheus.Collector].
func (t targets) Collect(metrics chan<- prometheus.Metric) {
	for target := range t.list() {
		available := 0.0
		if target.Available {
			available = 1
		}
		metrics <- prometheus.MustNewConstMetric(targetAvailable, prometheus.GaugeValue, available, target.Provider, target.Account, target.Model)
		metrics <- prometheus.MustNewConstMetric(targetInFlight, prometheus.GaugeValue, float64(target.InFlight), target.Provider, target.Account, target.Model)
	}
}
