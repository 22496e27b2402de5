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

	"github.com/watchkeeper/watchkeeper/localcluster/balancer"
)

// apiServer is how to run one API server.
type apiServer struct {
	name string
	port int
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

// apiservers returns the API servers.
func (s state) apiservers(count int) []apiServer {
	var result []apiServer
	for n := 1; n <= count; n++ {
		name := apiserverName(n)
		port := s.Ports[name]
		if n == 1 && count > 1 {
			port = s.Ports[portFirstReplica]
		}
		result = append(result, apiServer{name: name, port: port})
	}
	return result
}

// replicas are what several API servers need, in this process:
//
//	clients ──▶ balancer ──▶ kube-apiserver-N ──▶ etcd
type replicas struct {
	balancer *balancer.Balancer
	log      *os.File
}

// startReplicas starts the balancer.
func (c cluster) startReplicas(s state, apiservers []apiServer, mode balancer.Mode) (_ *replicas, err error) {
	r := &replicas{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.log, err = os.Create(c.logFile("balancer")); err != nil {
		return nil, err
	}
	if r.balancer, err = c.startBalancer(s, apiservers, mode, r.log); err != nil {
		return nil, err
	}
	for i, a := range apiservers {
		apiservers[i].before = func(context.Context) error {
			r.balancer.Starting(loopback(a.port))
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
	r.log.Close()
}
