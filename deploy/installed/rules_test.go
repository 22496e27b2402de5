// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestRules: each rule of the roles is needed, and no more. What a rule is for works, and
// does not without it.
func TestRules(t *testing.T) {
	t.Parallel()
	namespace, _ := install(t, nil)
	token, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pod := pods(t, namespace, 2)[0]
	role := "watchkeeper:" + namespace + ":" + name
	all, err := api.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resources := listed(t, all.Rules)
	// notCached reads all resources, and returns those that are then not cached.
	notCached := func(p *process, c kubernetes.Interface) (missing []string) {
		t.Helper()
		for _, r := range resources {
			if p.metric(t, fmt.Sprintf("watchkeeper_resource_synced{resource=%q}", r.name)) == "1" {
				continue
			}
			missing = append(missing, r.name)
			if err := c.CoreV1().RESTClient().Get().AbsPath(r.path).Param("resourceVersion", "0").Do(t.Context()).Error(); err != nil {
				t.Errorf("%s: %v", r.path, err)
			}
		}
		return missing
	}
	p := run(t, &pod, nil)
	through := client(t, namespace, p.URL, token)
	eventually(t, "cache of all resources", func(context.Context) error {
		if missing := notCached(p, through); len(missing) > 0 {
			return fmt.Errorf("not cached, though a rule allows it: %q", missing)
		}
		return nil
	})
	if c := complaints(p.Log()); len(c) > 0 || len(resources) < 30 {
		t.Errorf("%d resources; log: %q", len(resources), c)
	}
	p.Terminate()

	// Without rules that allow to list and watch, nothing is cached: no other rule allows it.
	fewer := all.DeepCopy()
	fewer.Rules = slices.DeleteFunc(fewer.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Verbs, "list") })
	if len(fewer.Rules) != 1 {
		t.Errorf("%d further rules", len(fewer.Rules))
	}
	if _, err := api.RbacV1().ClusterRoles().Update(t.Context(), fewer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		without string
		remove  func(context.Context) error
		check   func(p *process, c kubernetes.Interface) error
	}{
		{"lists and watches", nil, func(p *process, c kubernetes.Interface) error {
			for range 3 {
				if missing := notCached(p, c); len(missing) != len(resources) {
					return fmt.Errorf("%d resources are cached", len(resources)-len(missing))
				}
			}
			return says(p, "watch rolebindings")
		}},
		{"customresourcedefinitions", func(ctx context.Context) error {
			return api.RbacV1().ClusterRoles().Delete(ctx, role, metav1.DeleteOptions{})
		}, func(p *process, _ kubernetes.Interface) error { return says(p, "get customresourcedefinitions") }},
		{"CAs of clients", func(ctx context.Context) error {
			return api.RbacV1().RoleBindings("kube-system").Delete(ctx, role+":authentication-reader", metav1.DeleteOptions{})
		}, func(p *process, _ kubernetes.Interface) error { return says(p, "watch configmaps") }},
		{"reviews", func(ctx context.Context) error {
			return api.RbacV1().ClusterRoleBindings().Delete(ctx, role+":auth-delegator", metav1.DeleteOptions{})
		}, func(p *process, c kubernetes.Interface) error {
			if _, err := c.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "cannot create resource \"tokenreviews\"") {
				return fmt.Errorf("with a token: %v", err)
			}
			return errors.Join(says(p, "create tokenreviews"), says(p, "create subjectaccessreviews"))
		}},
		{"the ConfigMap", ruleRemover(namespace, "configmaps"), func(p *process, _ kubernetes.Interface) error {
			return says(p, "the CA is not published")
		}},
	} {
		if c.remove != nil {
			if err := c.remove(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p := run(t, &pod, nil)
		through := client(t, namespace, p.URL, token)
		eventually(t, "effect of no right to "+c.without, func(context.Context) error { return c.check(p, through) })
		p.Terminate()
	}
	if err := ruleRemover(namespace, "secrets")(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of a gateway without a right to its certificate", func(context.Context) error {
		p, err := try(t, &pod, nil)
		if err == nil {
			p.Terminate()
			return errors.New("it serves")
		}
		if !strings.Contains(err.Error(), "the gateway needs get and update on it") {
			return err
		}
		return nil
	})
}

// A listable is a resource of a rule.
type listable struct{ name, path string }

// listed returns the resources that rules allow to list.
func listed(t *testing.T, rules []rbacv1.PolicyRule) (all []listable) {
	t.Helper()
	_, served, err := api.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	preferred := map[string]listable{} // by resource and group
	for _, list := range served {
		group, version, ok := strings.Cut(list.GroupVersion, "/")
		path := "/apis/" + list.GroupVersion + "/"
		if !ok {
			group, version, path = "", list.GroupVersion, "/api/v1/"
		}
		for _, r := range list.APIResources {
			full := strings.TrimSuffix(r.Name+"."+version+"."+group, ".")
			if key := r.Name + "." + group; preferred[key].name == "" {
				preferred[key] = listable{full, path + r.Name}
			}
		}
	}
	for _, rule := range rules {
		if !slices.Contains(rule.Verbs, "list") {
			continue
		}
		for _, name := range rule.Resources {
			r, ok := preferred[name+"."+rule.APIGroups[0]]
			if !ok {
				t.Errorf("a rule names %s of %q, which the API server does not serve", name, rule.APIGroups[0])
				continue
			}
			all = append(all, r)
		}
	}
	return all
}

// says returns an error if the log does not have text.
func says(p *process, text string) error {
	if !strings.Contains(p.Log(), text) {
		return fmt.Errorf("the log does not have %q", text)
	}
	return nil
}

// ruleRemover removes the rule about a resource from the Role of the namespace.
func ruleRemover(namespace, resource string) func(context.Context) error {
	return func(ctx context.Context) error {
		role, err := api.RbacV1().Roles(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before := len(role.Rules)
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, resource) })
		if len(role.Rules) != before-1 {
			return fmt.Errorf("%d rules of %d are about %s", before-len(role.Rules), before, resource)
		}
		_, err = api.RbacV1().Roles(namespace).Update(ctx, role, metav1.UpdateOptions{})
		return err
	}
}
