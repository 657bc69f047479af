package kubeproxy

import (
	"fmt"
	"net"
)

const reject = "-j REJECT --reject-with icmp-port-unreachable"

// Text returns a Service's rules as iptables-save prints them: where packets come in by
// each address, and once for each port the chain that picks a Pod.
func (p *Proxy) Text(service string) []string {
	var in, pick []string
	written := map[string]bool{}
	for _, addr := range p.rulesOf(service) {
		r := p.state.Rules[addr]
		chain := hash(portName(r), protocol)
		in = append(in, p.entry(addr, r, chain)...)
		if !written[chain] {
			written[chain] = true
			pick = append(pick, choice(r, chain)...)
		}
	}
	return append(in, pick...)
}

// entry is how packets to an address of the Service, or to its port on this node, find
// its chain.
func (p *Proxy) entry(addr string, r Rule, chain string) []string {
	ip, port, _ := net.SplitHostPort(addr)
	match := func(table, comment, local string) string {
		return fmt.Sprintf("-A %s -p %s -m comment --comment %q%s -m %s --dport %s ", table, protocol, comment, local, protocol, port)
	}
	none := portName(r) + " has no endpoints"
	switch empty := len(r.Backends) == 0; {
	case ip == p.cfg.IP && empty:
		return []string{match("KUBE-EXTERNAL-SERVICES", none, " -m addrtype --dst-type LOCAL") + reject}
	case ip == p.cfg.IP:
		return []string{
			match("KUBE-NODEPORTS", portName(r), "") + "-j KUBE-EXT-" + chain,
			fmt.Sprintf("-A KUBE-EXT-%s -m comment --comment %q -j KUBE-MARK-MASQ", chain, "masquerade traffic for "+portName(r)+" external destinations"),
			fmt.Sprintf("-A KUBE-EXT-%s -j KUBE-SVC-%s", chain, chain),
		}
	case empty:
		return []string{match("KUBE-SERVICES -d "+ip+"/32", none, "") + reject}
	}
	return []string{match("KUBE-SERVICES -d "+ip+"/32", portName(r)+" cluster IP", "") + "-j KUBE-SVC-" + chain}
}

// choice is the chain that picks one of the Pods, each as likely as the others, and those
// that rewrite the packet's destination.
func choice(r Rule, chain string) []string {
	var out []string
	for i, b := range r.Backends {
		sep := "KUBE-SEP-" + hash(portName(r), protocol, b)
		odds := ""
		if left := len(r.Backends) - i; left > 1 {
			odds = fmt.Sprintf(" -m statistic --mode random --probability %.11f", 1/float64(left))
		}
		out = append(out, fmt.Sprintf("-A KUBE-SVC-%s -m comment --comment %q%s -j %s", chain, portName(r)+" -> "+b, odds, sep),
			fmt.Sprintf("-A %s -p %s -m comment --comment %q -m %s -j DNAT --to-destination %s", sep, protocol, portName(r), protocol, b))
	}
	return out
}
