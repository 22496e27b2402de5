// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Services with their endpoints, Ingresses with their rules, NetworkPolicies. */

import type { StateName } from '../data/state';
import { useLists, within } from './load';
import type { Selector, Thing } from './objects';
import { asking, Facts, Lack, ObjectLink, Rows, Section, type Props } from './parts';
import { builtIn, collectionOf } from './places';

interface Port {
  name?: string;
  port?: number;
  protocol?: string;
  targetPort?: number | string;
  nodePort?: number;
}

export interface ServiceObject extends Thing {
  spec?: { type?: string; clusterIP?: string; clusterIPs?: string[]; externalName?: string; selector?: Record<string, string>; ports?: Port[]; sessionAffinity?: string };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

export interface EndpointSlice extends Thing {
  addressType?: string;
  endpoints?: { addresses?: string[]; conditions?: { ready?: boolean; serving?: boolean; terminating?: boolean }; nodeName?: string; targetRef?: { kind?: string; name?: string; namespace?: string } }[] | null;
  ports?: Port[] | null;
}

const path = (id: string, namespace: string | undefined, name: string): string => `${collectionOf(builtIn(id), namespace)}/${name}`;

export const portWords = ({ name, port, protocol = 'TCP', targetPort, nodePort }: Port): string =>
  `${name ? `${name} ` : ''}${port ?? '*'}/${protocol}${targetPort !== undefined && targetPort !== port ? ` → ${targetPort}` : ''}${nodePort ? `, on nodes ${nodePort}` : ''}`;

/** An address behind a Service. */
export interface Endpoint {
  address: string;
  words: string;
  state: StateName;
  /** The Pod that has it; empty if it is not one. */
  pod: string;
  node: string;
}

/** The endpoints of all slices of a Service, each once, those that are not ready first. */
export function endpointsOf(slices: EndpointSlice[]): Endpoint[] {
  const found = new Map<string, Endpoint>();
  for (const { endpoints } of slices) {
    for (const { addresses = [], conditions = {}, nodeName = '', targetRef } of endpoints ?? []) {
      // An absent condition is unknown, which counts as ready.
      const ready = conditions.ready !== false;
      const words = conditions.terminating ? `terminating${conditions.serving ? ', still serving' : ''}` : ready ? 'ready' : 'not ready';
      const endpoint = { address: addresses.join(', '), words, state: (conditions.terminating ? 'terminating' : ready ? 'ready' : 'unready') as StateName, pod: targetRef?.kind === 'Pod' ? (targetRef.name ?? '') : '', node: nodeName };
      found.set(`${endpoint.pod} ${endpoint.address}`, endpoint);
    }
  }
  return [...found.values()].sort((a, b) => Number(a.state === 'ready') - Number(b.state === 'ready') || (`${a.pod} ${a.address}` < `${b.pod} ${b.address}` ? -1 : 1));
}

export function Service(props: Props<ServiceObject>) {
  const { metadata, spec = {}, status = {} } = props.object;
  const { slices } = useLists<EndpointSlice>({ slices: within(builtIn('EndpointSlice.discovery.k8s.io'), metadata.namespace, { labels: `kubernetes.io/service-name=${metadata.name}` }) }, asking(props));
  const endpoints = endpointsOf(slices?.items ?? []);
  const ready = endpoints.filter(({ state }) => state === 'ready').length;
  const selector = Object.entries(spec.selector ?? {}).map(([key, value]) => `${key}=${value}`);
  return (
    <>
      <Facts facts={[
        ['Type', spec.type ?? 'ClusterIP'],
        ['Address', (spec.clusterIPs ?? [spec.clusterIP]).filter(Boolean).join(', ')],
        ['External', [spec.externalName, ...(status.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => hostname || ip)].filter(Boolean).join(', ')],
        ['Ports', <ul class="plain">{(spec.ports ?? []).map((port) => <li key={`${port.name} ${port.port} ${port.protocol}`} class="mono">{portWords(port)}</li>)}</ul>],
        ['Selector', selector.length ? <code>{selector.join(', ')}</code> : spec.type === 'ExternalName' ? '' : 'none: its endpoints are set by hand'],
        ['Affinity', spec.sessionAffinity !== 'None' && spec.sessionAffinity],
      ]} />
      {spec.type !== 'ExternalName' && (
        <Section title={endpoints.length ? `Endpoints: ${ready} of ${endpoints.length} ready` : 'Endpoints'}>
          <Rows
            label="Endpoints"
            rows={endpoints.map(({ address, words, state, pod, node }) => ({
              key: `${pod} ${address}`, name: pod || address, path: pod && path('Pod', metadata.namespace, pod), state, words: `${words}, ${pod ? address : ''}${node && ` on ${node}`}`,
            }))}
          />
          <Lack of={slices && (slices.error ? slices : { ...slices, items: endpoints as unknown as Thing[] })} noun="EndpointSlices" />
        </Section>
      )}
    </>
  );
}

interface Backend {
  service?: { name?: string; port?: { name?: string; number?: number } };
  resource?: { kind?: string; name?: string };
}

export interface IngressObject extends Thing {
  spec?: {
    ingressClassName?: string;
    defaultBackend?: Backend;
    tls?: { hosts?: string[]; secretName?: string }[];
    rules?: { host?: string; http?: { paths?: { path?: string; pathType?: string; backend: Backend }[] } }[];
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

/** A rule: what is requested, and which Service answers. */
export interface Rule {
  from: string;
  service: string;
  to: string;
}

export function rulesOf({ spec = {} }: IngressObject): Rule[] {
  const rule = (from: string, { service, resource }: Backend): Rule => ({
    from, service: service?.name ?? '', to: service ? `${service.name}:${service.port?.name ?? service.port?.number ?? ''}` : `${resource?.kind ?? ''} ${resource?.name ?? ''}`,
  });
  return [
    ...(spec.rules ?? []).flatMap(({ host = '*', http }) => (http?.paths ?? []).map(({ path = '/', pathType, backend }) => rule(`${host}${path}${pathType === 'Prefix' && !path.endsWith('/') ? '/*' : pathType === 'Prefix' ? '*' : ''}`, backend))),
    ...(spec.defaultBackend ? [rule('everything else', spec.defaultBackend)] : []),
  ];
}

export function Ingress({ object }: Props<IngressObject>) {
  const { metadata, spec = {}, status = {} } = object;
  return (
    <>
      <Facts facts={[
        ['Class', spec.ingressClassName && <ObjectLink path={path('IngressClass.networking.k8s.io', '', spec.ingressClassName)}>{spec.ingressClassName}</ObjectLink>],
        ['Address', (status.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => hostname || ip).join(', ')],
      ]} />
      <Section title="Rules">
        <ul class="sets" aria-label="Rules">
          {rulesOf(object).map(({ from, service, to }) => (
            <li key={`${from} ${to}`}><span class="mono">{from}</span> <span class="muted">→</span> <ObjectLink path={service && path('Service', metadata.namespace, service)} kind="Service">{to}</ObjectLink></li>
          ))}
        </ul>
      </Section>
      {spec.tls?.length ? (
        <Section title="TLS">
          <ul class="sets">{spec.tls.map(({ hosts = [], secretName = '' }) => <li key={secretName}><ObjectLink path={secretName && path('Secret', metadata.namespace, secretName)} kind="Secret">{secretName}</ObjectLink> <span class="muted">{hosts.join(', ')}</span></li>)}</ul>
        </Section>
      ) : null}
    </>
  );
}

export interface NetworkPolicyObject extends Thing {
  spec?: { podSelector?: Selector; policyTypes?: string[]; ingress?: object[]; egress?: object[] };
}
