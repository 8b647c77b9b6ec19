package kv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

// joinCluster sets the addresses of a member of several. If the data directory is empty and there is a cluster to
// join, it adds the member there as a learner, so that the cluster never waits for a member that must still catch up.
func joinCluster(ctx context.Context, c Config, dir string, e *embed.Config) error {
	m := c.Member
	if m.PeerURL == "" {
		return nil
	}
	peer, at, err := addresses(m.PeerURL, m.PeerAddr)
	if err != nil {
		return err
	}
	if m.TLS.used() {
		e.PeerTLSInfo, e.ClientTLSInfo = m.TLS.info(), m.TLS.info()
	}
	e.ListenPeerUrls, e.AdvertisePeerUrls = []url.URL{at}, []url.URL{peer}
	if m.ClientURL != "" {
		client, at, err := addresses(m.ClientURL, m.ClientAddr)
		if err != nil {
			return err
		}
		e.ListenClientUrls = append(e.ListenClientUrls, at)
		e.AdvertiseClientUrls = []url.URL{client}
	}
	e.InitialCluster = e.Name + "=" + m.PeerURL
	belongs, err := hasLog(dir)
	if err != nil {
		return unusable(dir, err)
	}
	if belongs || len(m.Join) == 0 {
		return nil // it already belongs to a cluster, or is the first member
	}
	return addMember(ctx, c, e)
}

// hasLog reports whether a directory has a log, which etcd makes when it belongs to a cluster. A start that ended before leaves a database without
// entries. If the database has entries, their log is lost: etcd would begin a new cluster over them.
func hasLog(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, "member", "wal")); err == nil {
		return true, nil
	}
	applied, err := checkDatabase(filepath.Join(dir, "member", "snap", "db"))
	if err == nil && applied > 0 {
		err = errors.New("member/wal is missing")
	}
	return false, err
}

// addresses returns the URL for others, and the URL to listen on: with the host and port of listen, if there is one.
func addresses(text, listen string) (public, at url.URL, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return public, at, err
	}
	at = *u
	at.Host = cmp.Or(listen, u.Host)
	return *u, at, nil
}

func addMember(ctx context.Context, c Config, e *embed.Config) error {
	c.TLS = c.Member.TLS
	cluster, err := connect(c, c.Member.Join)
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Close() }()
	members, err := cluster.members(ctx)
	if err != nil {
		return fmt.Errorf("no answer from the cluster to join at %v: %w", c.Member.Join, errors.Join(c.TLS.refusal(ctx, c.Member.Join[0]), err))
	}
	added := false
	var initial []string
	var peers []*etcdserverpb.Member
	for _, m := range members {
		switch lost, err := cluster.replace(ctx, m, c.Member); {
		case err != nil:
			return err
		case lost:
			continue
		}
		if slices.Contains(m.PeerURLs, c.Member.PeerURL) {
			added = true // by an earlier start that did not finish
			continue
		}
		peers = append(peers, m)
		for _, at := range m.PeerURLs {
			initial = append(initial, m.Name+"="+at)
		}
	}
	if !added {
		// A cluster accepts one member at a time: the last one must have been present for some seconds.
		err := retry(ctx, func() error {
			_, err := cluster.client.MemberAddAsLearner(ctx, []string{c.Member.PeerURL})
			return err
		})
		if err != nil {
			return fmt.Errorf("the cluster at %v does not take this member: %w", c.Member.Join, err)
		}
	}
	e.InitialCluster = strings.Join(append(initial, e.Name+"="+c.Member.PeerURL), ",")
	e.ClusterState = embed.ClusterStateFlagExisting
	return known(ctx, peers, c.Member)
}

// known returns when every member that answers knows exactly the new one and its peers. When etcd starts, it asks one of
// them, and gives up if that member does not know the last change yet.
func known(ctx context.Context, peers []*etcdserverpb.Member, by Member) error {
	return retry(ctx, func() error {
		for _, peer := range peers {
			for _, at := range peer.PeerURLs {
				members, err := membersAt(ctx, at, by.TLS)
				if err != nil {
					continue // etcd asks another one
				}
				if len(members) != len(peers)+1 || !slices.ContainsFunc(members, func(urls []string) bool { return slices.Contains(urls, by.PeerURL) }) {
					return fmt.Errorf("the member at %s has not heard that this one joins; see whether it works and reaches the others", at)
				}
			}
		}
		return nil
	})
}

// membersAt returns the peer URLs of all members that the one at a peer URL knows.
func membersAt(ctx context.Context, peerURL string, files TLSFiles) (all [][]string, err error) {
	response, err := getFrom(ctx, peerURL+"/members", files)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var members []struct {
		PeerURLs []string `json:"peerURLs"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&members)
	for _, m := range members {
		all = append(all, m.PeerURLs)
	}
	return all, err
}

// getFrom reads an address of another member. The caller closes the body.
func getFrom(ctx context.Context, address string, files TLSFiles) (*http.Response, error) {
	secure, err := files.client()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return (&http.Client{Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}, Timeout: defaultTimeout}).Do(request)
}

// replace removes a member of the cluster whose place the new member takes, and reports whether it has. The new member
// has no files, so it must not have the identity of one that has voted: the cluster could lose what that one has
// confirmed. A member without a name has never started and has confirmed nothing.
func (s *Store) replace(ctx context.Context, old *etcdserverpb.Member, by Member) (bool, error) {
	same := slices.Contains(old.PeerURLs, by.PeerURL) && old.Name != ""
	if !same && (by.Replace == "" || !slices.Contains(old.PeerURLs, by.Replace)) {
		return false, nil
	}
	for _, at := range old.PeerURLs {
		if runs(ctx, at, by.TLS) {
			return false, fmt.Errorf("the member at %s, which this one would replace, still runs: stop it first, or start this one with other addresses", at)
		}
	}
	err := retry(ctx, func() error {
		_, err := s.client.MemberRemove(ctx, old.ID)
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("the cluster does not remove the former member at %v: %w", old.PeerURLs, err)
	}
	return true, nil
}

// runs reports whether a member answers at its PeerURL.
func runs(ctx context.Context, peerURL string, files TLSFiles) bool {
	response, err := getFrom(ctx, peerURL+"/version", files)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// promote makes this member a full member if it is a learner and has caught up. The learner either joins now, or
// stopped earlier before it became a full member.
func (e *embedded) promote(ctx context.Context) error {
	if !e.etcd.Server.IsLearner() {
		return nil
	}
	own := uint64(e.etcd.Server.MemberID())
	err := retry(ctx, func() error {
		_, err := e.etcd.Server.PromoteMember(ctx, own) // it asks the leader
		if errors.Is(err, membership.ErrMemberNotLearner) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("this member could not become a full one: %w", err)
	}
	return nil
}

// joinLimit is the maximum time for a cluster to accept a member.
const joinLimit = time.Minute

// retry calls f until it succeeds, ctx ends or joinLimit has passed. It returns f's last error.
func retry(ctx context.Context, f func() error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 50*time.Millisecond, 500*time.Millisecond
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, f() },
		backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(joinLimit))
	return err
}

// announce publishes this member's peer address in the cluster if it has changed. A cluster of one starts without an
// address.
func (s *Store) announce(ctx context.Context, peerURL string) error {
	if peerURL == "" {
		return nil
	}
	own := uint64(s.embedded.etcd.Server.MemberID())
	members, err := s.members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.ID == own && !slices.Contains(m.PeerURLs, peerURL) {
			_, err := s.client.MemberUpdate(ctx, own, []string{peerURL})
			return err
		}
	}
	return nil
}

func (s *Store) members(ctx context.Context) ([]*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	list, err := s.client.MemberList(ctx)
	if err != nil {
		return nil, plainError(err)
	}
	return list.Members, nil
}
