// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	"github.com/watchkeeper/watchkeeper/localcluster/balancer"
	"github.com/watchkeeper/watchkeeper/localcluster/etcdproxy"
)

// apiServer is how to run one API server.
type apiServer struct {
	name string
	port int
	etcd string // host:port
	// before and check, if not nil, are those of a replica: before is called before each
	// start, and check adds to the health check.
	before, check func(context.Context) error
}

// apiserverName returns the name of the nth API server, counted from 1.
func apiserverName(n int) string {
	if n == 1 {
		return kubeAPIServer
	}
	return fmt.Sprintf("%s-%d", kubeAPIServer, n)
}

// apiservers returns the API servers, which use etcd directly.
func (s state) apiservers(count int) []apiServer {
	var result []apiServer
	for n := 1; n <= count; n++ {
		name := apiserverName(n)
		port := s.Ports[name]
		if n == 1 && count > 1 {
			port = s.Ports[portFirstReplica]
		}
		result = append(result, apiServer{name: name, port: port, etcd: loopback(s.Ports[etcd])})
	}
	return result
}

// replicas are what several API servers need, in this process:
//
//	clients ──▶ balancer ──▶ kube-apiserver-N ──▶ proxy of its own ──▶ etcd
type replicas struct {
	balancer *balancer.Balancer
	proxies  map[string]*etcdproxy.Proxy // by API server
	log      *os.File
}

// startReplicas starts the balancer and the proxies, and lets the API servers use the
// proxies.
func (c cluster) startReplicas(s state, apiservers []apiServer, mode balancer.Mode) (_ *replicas, err error) {
	r := &replicas{proxies: map[string]*etcdproxy.Proxy{}}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.log, err = os.Create(c.logFile("balancer")); err != nil {
		return nil, err
	}
	for i, a := range apiservers {
		listener, err := net.Listen("tcp", loopback(0))
		if err != nil {
			return nil, err
		}
		apiservers[i].etcd = listener.Addr().String()
		if r.proxies[a.name], err = c.startProxy(listener, a.etcd); err != nil {
			return nil, err
		}
	}
	if r.balancer, err = c.startBalancer(s, apiservers, mode, r.log); err != nil {
		return nil, err
	}
	for i, a := range apiservers {
		apiservers[i].before = func(context.Context) error {
			r.balancer.Starting(loopback(a.port))
			// An API server does not become ready while its watches receive nothing.
			r.proxies[a.name].SetLag(etcdproxy.Lag{})
			return nil
		}
		apiservers[i].check = func(context.Context) error {
			if !r.balancer.Ready(loopback(a.port)) {
				return errors.New("the balancer does not yet use it")
			}
			return nil
		}
	}
	return r, nil
}

func (c cluster) startProxy(listener net.Listener, address string) (*etcdproxy.Proxy, error) {
	server, err := c.tlsConfig("etcd-ca", "etcd")
	if err != nil {
		return nil, err
	}
	server.ClientAuth = tls.RequireAndVerifyClientCert
	client, err := c.tlsConfig("etcd-ca", "apiserver-etcd")
	if err != nil {
		return nil, err
	}
	return etcdproxy.Start(listener, server, address, client)
}

func (c cluster) startBalancer(s state, apiservers []apiServer, mode balancer.Mode, out *os.File) (*balancer.Balancer, error) {
	health, err := c.healthClient("ca", "admin")
	if err != nil {
		return nil, err
	}
	server, err := c.tlsConfig("ca", "server")
	if err != nil {
		return nil, err
	}
	server.ClientAuth = tls.VerifyClientCertIfGiven
	frontProxy, err := c.tlsConfig("ca", "front-proxy")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", loopback(s.Ports[kubeAPIServer]))
	if err != nil {
		return nil, err
	}
	config := balancer.Config{Mode: mode, Server: server, Client: frontProxy, Log: log.New(out, "", log.LstdFlags)}
	for _, a := range apiservers {
		config.Replicas = append(config.Replicas, balancer.Replica{
			Address: loopback(a.port),
			Check:   httpHealth(health, "https://"+loopback(a.port)+"/readyz"),
		})
	}
	return balancer.Start(listener, config), nil
}

func (r *replicas) close() {
	if r.balancer != nil {
		r.balancer.Close()
	}
	for _, proxy := range r.proxies {
		if proxy != nil { // its start failed
			proxy.Close()
		}
	}
	r.log.Close()
}

// setLag delays the watches of an API server on etcd by req.Delay, or holds them back if
// that is 0, for req.For or until the next change if that is 0.
func (s *supervisor) setLag(_ context.Context, req request) (string, error) {
	c, err := s.find(req.Component)
	if err != nil {
		return "", err
	}
	if c.tier != apiTier {
		return "", fmt.Errorf("%s does not watch etcd; name an API server", c.name)
	}
	if s.replicas == nil {
		return "", errors.New("an API server can lag only behind another one; start with `localcluster up --apiservers 2` or more")
	}
	var lag etcdproxy.Lag
	if !req.Off {
		lag.Delay = req.Delay
		if lag.Delay == 0 {
			lag.Delay = etcdproxy.Hold
		}
		if req.For != 0 {
			lag.Until = time.Now().Add(req.For)
		}
	}
	s.replicas.proxies[c.name].SetLag(lag)
	return fmt.Sprintf("%s: watches %s", c.name, describeLag(lag)), nil
}

func describeLag(lag etcdproxy.Lag) string {
	text := "held back"
	switch lag.Delay {
	case 0:
		return "not delayed"
	case etcdproxy.Hold:
	default:
		text = fmt.Sprintf("delayed by %s", lag.Delay)
	}
	if !lag.Until.IsZero() {
		text += fmt.Sprintf(" for %s", time.Until(lag.Until).Round(100*time.Millisecond))
	}
	return text
}

// lag returns how an API server lags.
func (s *supervisor) lag(c *component) etcdproxy.Lag {
	if s.replicas == nil || c.tier != apiTier {
		return etcdproxy.Lag{}
	}
	return s.replicas.proxies[c.name].Lag()
}
