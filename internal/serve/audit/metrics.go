// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import "github.com/prometheus/client_golang/prometheus"

var (
	eventsDesc = prometheus.NewDesc("watchkeeper_audit_events_total",
		"Audit events sent to the log or its buffer.", nil, nil)
	lostDesc = prometheus.NewDesc("watchkeeper_audit_lost_events_total",
		"Audit events that could not be written, or did not fit into the buffer.", nil, nil)
	refusedDesc = prometheus.NewDesc("watchkeeper_audit_refused_requests_total",
		"Requests refused because their audit event could not be written, in mode blocking-strict.", nil, nil)
)

// Describe implements prometheus.Collector.
func (a *Auditor) Describe(c chan<- *prometheus.Desc) {
	c <- eventsDesc
	c <- lostDesc
	c <- refusedDesc
}

// Collect implements prometheus.Collector; the nil Auditor has no metrics.
func (a *Auditor) Collect(c chan<- prometheus.Metric) {
	if a == nil {
		return
	}
	for desc, n := range map[*prometheus.Desc]int64{
		eventsDesc: a.backend.events.Load(), lostDesc: a.backend.losses.count.Load(), refusedDesc: a.refused.Load(),
	} {
		c <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n))
	}
}
