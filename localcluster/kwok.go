// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"strings"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/apis/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

// ownStages are the stages kwok's defaults lack: a slow start and crash loops.
//
//go:embed stages/*.yaml
var ownStages embed.FS

// writeKwokConfig writes what kwok simulates: how nodes and Pods change by
// themselves (stages), and what stands behind `kubectl logs`, `exec`, `attach`
// and `port-forward` of every container (pods.go).
func (c cluster) writeKwokConfig(s state) error {
	var out bytes.Buffer
	add := func(document string) {
		fmt.Fprintf(&out, "---\n%s\n", strings.TrimSpace(document))
	}
	add(nodefast.DefaultNodeInit)
	add(nodeheartbeat.DefaultNodeHeartbeatWithLease)
	add(podfast.DefaultPodReady)
	add(podfast.DefaultPodComplete)
	add(podfast.DefaultPodDelete)
	entries, err := ownStages.ReadDir("stages")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		data, err := ownStages.ReadFile("stages/" + entry.Name())
		if err != nil {
			return err
		}
		add(string(data))
	}
	for _, object := range []any{
		kwokOptions(),
		everyPod("ClusterLogs", "logs", map[string]any{
			"logsFile":         c.path("pod", "container.log"),
			"previousLogsFile": c.path("pod", "previous.log"),
			"follow":           true,
		}),
		everyPod("ClusterAttach", "attaches", map[string]any{
			"logsFile": c.path("pod", "container.log"),
		}),
		everyPod("ClusterExec", "execs", map[string]any{
			"local": map[string]any{"workDir": c.path("pod", "root")},
		}),
		everyPod("ClusterPortForward", "forwards", map[string]any{
			"target": map[string]any{"address": "127.0.0.1", "port": s.Ports[portPod]},
		}),
	} {
		data, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		add(string(data))
	}
	return os.WriteFile(c.path("kwok.yaml"), out.Bytes(), 0o600)
}

// kwokOptions raises the number of workers so that the Pods of `localcluster
// load` become Running as fast as they are made. kwok applies its defaults only
// where there is no configuration object at all, hence they are set here.
func kwokOptions() *kwokconfig.KwokConfiguration {
	options := &kwokconfig.KwokConfiguration{}
	options.APIVersion, options.Kind = kwokconfig.GroupVersion.String(), kwokconfig.KwokConfigurationKind
	kwokconfig.SetObjectDefaults_KwokConfiguration(options)
	options.Options.PodPlayStageParallelism = 16
	return options
}

// everyPod is a kwok object of the given kind that holds for all Pods.
func everyPod(kind, list string, entry map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "kwok.x-k8s.io/v1alpha1",
		"kind":       kind,
		"metadata":   map[string]any{"name": "every-pod"},
		"spec":       map[string]any{list: []any{entry}},
	}
}
