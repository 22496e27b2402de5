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

// A class is what a string in an object is.
type class int

const (
	freeText   class = iota // anything
	nameText                // the name of an object, or of a host or person
	plainText               // of the API, such as a kind
	base64Text              // anything, encoded
)

// A scope is an object or an array that a walker is in.
type scope struct {
	array  bool
	member string // whose value it is, or is in, without f:
	wants  bool   // a member's name comes, not a value

	root     bool // the object that is walked through
	metadata bool // of an object
	ref      bool // it refers to an object
	managed  bool // an entry of managedFields
	fields   bool // fieldsV1, or within it
	free     bool // its members are named by people
	selector bool // either that, or matchLabels and matchExpressions
	encoded  bool // its values are in base64
}

// freeMembers are the members whose members are named by people.
var freeMembers = []string{"labels", "annotations", "matchLabels", "nodeSelector", "volumeAttributes", "parameters"}

// enter returns the scope of the value of a member.
func (s *scope) enter(member, kind string, array bool) scope {
	in := scope{array: array, member: member}
	if s.array { // in the same place as the others
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

// isReference reports whether the value of a member is a reference to an object,
// or several.
func isReference(member string) bool {
	for _, end := range []string{"Ref", "Refs", "Reference", "References"} {
		if strings.HasSuffix(member, end) {
			return true
		}
	}
	return slices.Contains(references, member)
}

var references = []string{
	"involvedObject", "regarding", "related", "describedObject", // Events and autoscaling
	"subjects",                                           // of role bindings
	"imagePullSecrets", "secrets", "secret", "configMap", // of Pods and service accounts
	"service",    // of an Ingress, a webhook, an APIService
	"active",     // of a CronJob
	"dataSource", // of a claim
}

// namingMembers hold the name of an object outside of references, or several.
var namingMembers = []string{
	"namespace", "namespaces", "generateName", "resourceNames",
	"nodeName", "nominatedNodeName", "serviceAccount", "serviceAccountName", "secretName", "secretNames", "configMapName",
	"claimName", "volumeName", "persistentVolumeName", "persistentVolumeClaimName", "storageClassName", "volumeAttributesClassName",
	"ingressClassName", "gatewayClassName", "priorityClassName", "runtimeClassName", "serviceName", "podName", "jobName", "roleName",
	"resourceClaimName", "resourceClaimTemplateName", "deviceClassName", "podGroupName", "secretNamespace", "targetNamespace",
	"username",
}

// namingKeys are labels and annotations that hold the name of an object.
var namingKeys = []string{
	"kubernetes.io/metadata.name", "kubernetes.io/hostname", "kubernetes.io/service-name", "kubernetes.io/service-account.name",
	"statefulset.kubernetes.io/pod-name", "job-name", "batch.kubernetes.io/job-name", "volume.kubernetes.io/selected-node",
}

// hostMembers hold the name of a host, or several, or an address.
var hostMembers = []string{"host", "hosts", "hostname", "hostnames", "subdomain", "externalName", "address"}

// value returns what a string is that is the value of a member, or in its array.
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

// plain reports whether the value of a member is of the API.
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

// named reports whether people give the names of members.
func (s *scope) named(member string) bool {
	switch {
	case s.free:
		return true
	case s.selector:
		return member != "matchLabels" && member != "matchExpressions"
	}
	// The API's are words; others are, here and there, the keys of what a
	// custom resource maps.
	return wordEnd(member, 0) < len(member) && !strings.HasPrefix(member, "x-kubernetes-")
}

// isTyped reports whether a text as a whole is what a client reads as a number, a
// quantity, a time or an address: another might not be read at all.
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

// isAddress reports whether a text is an address, or a range of them.
func isAddress(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}
