// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A class says what a string in an object may contain.
type class int

const (
	freeText   class = iota // any text
	nameText                // the name of an object, a host or a person
	plainText               // a word of the API, such as a kind
	base64Text              // any text, base64-encoded
)

// A scope is an object or array that contains the walker's position.
type scope struct {
	array  bool
	member string // that has this value, without f:
	wants  bool   // a member name follows, not a value

	root     bool // the outermost object
	metadata bool // metadata of an object
	ref      bool // a reference to an object
	managed  bool // an entry of managedFields
	fields   bool // fieldsV1, or within it
	free     bool // users choose its member names
	selector bool // such a map, or matchLabels and matchExpressions
	encoded  bool // values are base64
}

// freeMembers are the maps whose keys users choose.
var freeMembers = []string{"labels", "annotations", "matchLabels", "nodeSelector", "volumeAttributes", "parameters"}

// enter returns the scope of a member's value.
func (s *scope) enter(member, kind string, array bool) scope {
	in := scope{array: array, member: member}
	if s.array { // elements have the scope of the array
		in = *s
		in.array = array
		in.wants = false
		return in
	}
	data := s.root && (kind == "ConfigMap" || kind == "Secret") || s.fields
	switch {
	case s.free:
		in.free, in.fields = true, s.fields
	case member == "fieldsV1" && s.managed:
		in.fields = true
	case s.fields:
		in.fields = true
		fallthrough
	default:
		in.free = slices.Contains(freeMembers, member) || data && (member == "data" || member == "binaryData" || member == "stringData")
		in.selector = member == "selector"
		in.encoded = in.free && (member == "binaryData" || member == "data" && kind == "Secret")
		in.metadata = member == "metadata"
		in.managed = member == "managedFields" && s.metadata
		in.ref = isReference(member)
	}
	return in
}

// isReference reports whether a member refers to objects.
func isReference(member string) bool {
	for _, end := range []string{"Ref", "Refs", "Reference", "References"} {
		if strings.HasSuffix(member, end) {
			return true
		}
	}
	return slices.Contains(references, member)
}

var references = []string{
	"involvedObject", "regarding", "related", "describedObject", // of Events and autoscaling
	"subjects",                                           // of role bindings
	"imagePullSecrets", "secrets", "secret", "configMap", // of Pods and service accounts
	"service",    // of Ingresses, webhooks and APIServices
	"active",     // of CronJobs
	"dataSource", // of claims
}

// namingMembers contain names of objects outside of references.
var namingMembers = []string{
	"namespace", "namespaces", "generateName", "resourceNames",
	"nodeName", "nominatedNodeName", "serviceAccount", "serviceAccountName", "secretName", "secretNames", "configMapName",
	"claimName", "volumeName", "persistentVolumeName", "persistentVolumeClaimName", "storageClassName", "volumeAttributesClassName",
	"ingressClassName", "gatewayClassName", "priorityClassName", "runtimeClassName", "serviceName", "podName", "jobName", "roleName",
	"resourceClaimName", "resourceClaimTemplateName", "deviceClassName", "podGroupName", "secretNamespace", "targetNamespace",
	"username",
}

// namingKeys are labels and annotations whose values are names of objects.
var namingKeys = []string{
	"kubernetes.io/metadata.name", "kubernetes.io/hostname", "kubernetes.io/service-name", "kubernetes.io/service-account.name",
	"statefulset.kubernetes.io/pod-name", "job-name", "batch.kubernetes.io/job-name", "volume.kubernetes.io/selected-node",
}

// hostMembers contain names of hosts, or addresses.
var hostMembers = []string{"host", "hosts", "hostname", "hostnames", "subdomain", "externalName", "address"}

// value returns the class of a string that is a member's value or in its array.
func (s *scope) value(member, content string) class {
	switch {
	case s.encoded || !s.free && (member == "caBundle" || member == "certificate"):
		return base64Text
	case s.plain(member):
		return plainText
	case s.free && !slices.Contains(namingKeys, member):
		return freeText
	case s.free, (s.metadata || s.ref) && member == "name", slices.Contains(namingMembers, member):
		return nameText
	case slices.Contains(hostMembers, member):
		if !isAddress(content) {
			return nameText
		}
	}
	return freeText
}

// plain reports whether the API defines the values of a member.
func (s *scope) plain(member string) bool {
	switch member {
	case "kind", "apiVersion":
		return s.root || s.ref || s.managed
	case "apiGroup":
		return s.ref
	case "resourceVersion":
		return s.metadata || s.ref
	case "operation", "fieldsType", "subresource", "time":
		return s.managed
	}
	return false
}

// named reports whether users choose the names of the members.
func (s *scope) named(member string) bool {
	switch {
	case s.free:
		return true
	case s.selector:
		return member != "matchLabels" && member != "matchExpressions"
	}
	// Member names of the API are single words. In custom resources the keys of
	// a map may look different.
	return wordEnd(member, 0) < len(member) && !strings.HasPrefix(member, "x-kubernetes-")
}

// isTyped reports whether clients parse a text as a number, quantity, time or
// address: replacing a part of it could make it unreadable.
func isTyped(s string) bool {
	if s == "" || len(s) > 40 || (s[0] < '0' || s[0] > '9') && s[0] != '-' && s[0] != '+' && s[0] != '.' {
		return false
	}
	if _, err := resource.ParseQuantity(s); err == nil {
		return true
	}
	if isAddress(s) {
		return true
	}
	if _, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return true
	}
	_, err := time.ParseDuration(s)
	return err == nil
}

// isAddress reports whether a text is an address or a range of addresses.
func isAddress(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}
