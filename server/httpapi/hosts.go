package httpapi

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// CheckHost refuses requests for another host than this server's own. Otherwise a page whose name resolves to this
// server would be of the same origin. Loopback names always belong to this server; health probes may use any name.
func CheckHost(hosts []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ownHost(hosts, r.Host) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			writeError(w, errHost)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ownHost(hosts []string, asked string) bool {
	name := asked
	if host, _, err := net.SplitHostPort(asked); err == nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(hosts, func(host string) bool {
		return host == "*" || strings.EqualFold(host, name) || strings.EqualFold(host, asked)
	})
}

// Proxies are the addresses whose X-Forwarded-For is trusted.
type Proxies []netip.Prefix

// ParseProxies reads addresses and ranges.
func ParseProxies(list []string) (Proxies, error) {
	var p Proxies
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			ip, ipErr := netip.ParseAddr(text)
			if ipErr != nil {
				return nil, fmt.Errorf("--trusted-proxy %q is neither an address nor a range such as 10.0.0.0/8", text)
			}
			prefix = netip.PrefixFrom(ip, ip.BitLen())
		}
		p = append(p, prefix)
	}
	return p, nil
}

// Trusts reports whether an address is that of a trusted proxy.
func (p Proxies) Trusts(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(ip.Unmap()) })
}

// Sent reports whether a request comes directly from a trusted proxy.
func (p Proxies) Sent(r *http.Request) bool { return p.Trusts(address(r)) }

func (a *API) network(r *http.Request) string { return Network(a.Address(r)) }

// Network returns what the limits of an address count by: an IPv4 address, or the /64 of an IPv6 address, because a host may use
// all addresses of its /64.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
}

// Address returns the address of the client: the last address on the way of the request that does not belong to a trusted proxy.
func (p Proxies) Address(r *http.Request) string {
	from := address(r)
	way := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(way) - 1; i >= 0 && p.Trusts(from); i-- {
		hop := strings.TrimSpace(way[i])
		if withPort, err := netip.ParseAddrPort(hop); err == nil { // some proxies state the port, which differs for each connection
			hop = withPort.Addr().String()
		}
		from = cmp.Or(hop, from)
	}
	return from
}
