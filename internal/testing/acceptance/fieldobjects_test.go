// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

// fieldObjects are objects of the kinds that have selectable fields of their own,
// and of kinds without objects in a new cluster.
func fieldObjects(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "fields"}}, private)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	authority, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})))
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	return strings.NewReplacer(
		"TRUSTED", string(trusted),
		"PUBLICKEY", encode(key),
		"PROOF", encode(ed25519.Sign(private, []byte("pod-uid"))),
		"REQUEST", encode(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})),
	).Replace(fieldManifest)
}

const fieldManifest = `
{apiVersion: v1, kind: Pod, metadata: {name: fields-plain, namespace: NAMESPACE}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: fields-host, namespace: NAMESPACE}
spec: {hostNetwork: true, restartPolicy: Never, schedulerName: nobody, serviceAccountName: default, containers: [{name: c, image: i}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: fields, namespace: NAMESPACE}, type: example.com/secret}
---
{apiVersion: v1, kind: Secret, metadata: {name: fields-opaque, namespace: NAMESPACE}}
---
{apiVersion: v1, kind: Service, metadata: {name: fields-none, namespace: NAMESPACE}, spec: {clusterIP: None, selector: {a: b}}}
---
{apiVersion: v1, kind: Service, metadata: {name: fields-external, namespace: NAMESPACE}, spec: {type: ExternalName, externalName: example.com}}
---
{apiVersion: v1, kind: Service, metadata: {name: fields-port, namespace: NAMESPACE}, spec: {type: NodePort, ports: [{port: 80}]}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: fields-none, namespace: NAMESPACE}
spec: {replicas: 0, selector: {rc: none}, template: {metadata: {labels: {rc: none}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: fields, namespace: NAMESPACE}
spec: {replicas: 2, selector: {rc: some}, template: {metadata: {labels: {rc: some}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: fields-none, namespace: NAMESPACE}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: fields, namespace: NAMESPACE}
spec: {managedBy: example.com/nobody, completions: 5, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
---
apiVersion: v1
kind: Event
metadata: {name: fields-old, namespace: NAMESPACE}
involvedObject: {kind: Pod, namespace: NAMESPACE, name: p, uid: u-1, apiVersion: v1, resourceVersion: "77", fieldPath: "spec.containers{c}"}
reason: Old
type: Normal
source: {component: scheduler-of-old}
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: fields-new, namespace: NAMESPACE}
regarding: {kind: Pod, namespace: NAMESPACE, name: q, uid: u-2, apiVersion: v1, resourceVersion: "78", fieldPath: "spec.containers{d}"}
reason: New
type: Warning
action: Act
reportingController: example.com/new
reportingInstance: one
eventTime: "2026-01-02T03:04:05.000006Z"
---
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: fields}
spec: {signerName: example.com/signer, usages: [client auth], request: REQUEST}
---
{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {name: fields}, spec: {trustBundle: TRUSTED}}
---
{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {name: "example.com:signer:fields"}, spec: {signerName: example.com/signer, trustBundle: TRUSTED}}
---
apiVersion: certificates.k8s.io/v1beta1
kind: PodCertificateRequest
metadata: {name: fields, namespace: NAMESPACE}
spec:
  signerName: example.com/signer
  podName: p
  podUID: pod-uid
  serviceAccountName: default
  serviceAccountUID: sa-uid
  nodeName: node-0
  nodeUID: node-uid
  maxExpirationSeconds: 86400
  pkixPublicKey: PUBLICKEY
  proofOfPossession: PROOF
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: fields-node}
spec: {driver: one.example.com, nodeName: node-0, pool: {name: p, generation: 1, resourceSliceCount: 1}, devices: [{name: d}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: fields-all}
spec: {driver: two.example.com, allNodes: true, pool: {name: p, generation: 1, resourceSliceCount: 1}, devices: [{name: d}]}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: fields}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: fields, namespace: NAMESPACE}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: fields}}]}}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: fields, namespace: NAMESPACE}, spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: fields}}]}}}}
---
{apiVersion: resource.k8s.io/v1alpha3, kind: DeviceTaintRule, metadata: {name: fields}, spec: {deviceSelector: {driver: one.example.com}, taint: {key: example.com/k, effect: NoSchedule}}}
---
{apiVersion: resource.k8s.io/v1alpha3, kind: ResourcePoolStatusRequest, metadata: {name: fields}, spec: {driver: one.example.com}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: fields, namespace: NAMESPACE}, spec: {limits: []}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: fields, namespace: NAMESPACE}, spec: {hard: {pods: "100"}}}
---
{apiVersion: v1, kind: PodTemplate, metadata: {name: fields, namespace: NAMESPACE}, template: {spec: {containers: [{name: c, image: i}]}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: fields, namespace: NAMESPACE}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: fields}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /nowhere}}}
---
{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: fields, namespace: NAMESPACE}, revision: 1, data: {a: b}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: fields, namespace: NAMESPACE}
spec: {replicas: 0, selector: {matchLabels: {d: d}}, template: {metadata: {labels: {d: d}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: fields, namespace: NAMESPACE}
spec: {replicas: 0, selector: {matchLabels: {s: s}}, template: {metadata: {labels: {s: s}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: fields, namespace: NAMESPACE}
spec: {selector: {matchLabels: {ds: ds}}, template: {metadata: {labels: {ds: ds}}, spec: {nodeSelector: {no: such}, containers: [{name: c, image: i}]}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: fields, namespace: NAMESPACE}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: nothing}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: fields, namespace: NAMESPACE}
spec: {suspend: true, schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: fields, namespace: NAMESPACE}, spec: {maxUnavailable: 1, selector: {matchLabels: {no: such}}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: fields, namespace: NAMESPACE}, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: fields}, spec: {controller: example.com/c}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: fields, namespace: NAMESPACE}, spec: {podSelector: {}}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: fields}, handler: h}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fields}, provisioner: example.com/p}
---
{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: fields}, driverName: example.com, parameters: {a: b}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: fields.example.com}, spec: {}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: fields}, spec: {drivers: []}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: fields, namespace: NAMESPACE}, storageClassName: fields}
---
{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: fields}, spec: {attacher: example.com, nodeName: node-0, source: {persistentVolumeName: fields}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: fields}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: fields}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: fields}
spec: {matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}, validations: [{expression: "true"}]}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: fields}, spec: {policyName: fields, validationActions: [Warn]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: fields}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "test", path: "/kind", value: "x"}]'}}]
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: fields}, spec: {policyName: fields}}
---
{apiVersion: coordination.k8s.io/v1beta1, kind: LeaseCandidate, metadata: {name: fields, namespace: NAMESPACE}, spec: {leaseName: l, binaryVersion: 1.36.0, emulationVersion: 1.36.0, strategy: OldestEmulationVersion}}
---
{apiVersion: scheduling.k8s.io/v1beta1, kind: Workload, metadata: {name: fields, namespace: NAMESPACE}, spec: {podGroupTemplates: [{name: g, schedulingPolicy: {basic: {}}}]}}
---
{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: fields, namespace: NAMESPACE}, spec: {schedulingPolicy: {basic: {}}}}
---
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: fields, namespace: NAMESPACE}
spec: {workloadRef: {workloadName: fields, templateName: g}, schedulingPolicy: {basic: {}}}
---
apiVersion: lifecycle.k8s.io/v1alpha1
kind: EvictionRequest
metadata: {name: fields, namespace: NAMESPACE}
spec: {target: {pod: {name: fields-plain, uid: 00000000-0000-0000-0000-000000000000}}, requester: example.com/fields, intent: Eviction}
---
{apiVersion: storagemigration.k8s.io/v1beta1, kind: StorageVersionMigration, metadata: {name: fields}, spec: {resource: {group: example.com, resource: nothings}}}
`
