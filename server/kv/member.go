package kv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

// joinCluster sets the addresses of a member of several. If the data directory is empty and there is a cluster to
// join, it adds the member there as a learner, so that the cluster never waits for a member that must still catch up.
func joinCluster(ctx context.Context, c Config, dir string, e *embed.Config) error {
	if c.Member.PeerURL == "" {
		return nil
	}
	peer, err := url.Parse(c.Member.PeerURL)
	if err != nil {
		return err
	}
	e.ListenPeerUrls, e.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	if c.Member.ClientURL != "" {
		at, err := url.Parse(c.Member.ClientURL)
		if err != nil {
			return err
		}
		e.ListenClientUrls = append(e.ListenClientUrls, *at)
		e.AdvertiseClientUrls = []url.URL{*at}
	}
	e.InitialCluster = e.Name + "=" + c.Member.PeerURL
	if _, err := os.Stat(filepath.Join(dir, "member")); err == nil || len(c.Member.Join) == 0 {
		return nil // it already belongs to a cluster, or is the first member
	}
	return addMember(ctx, c, e)
}

func addMember(ctx context.Context, c Config, e *embed.Config) error {
	cluster, err := connect(c, c.Member.Join)
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Close() }()
	members, err := cluster.members(ctx)
	if err != nil {
		return fmt.Errorf("no answer from the cluster to join at %v: %w", c.Member.Join, err)
	}
	added := false
	var initial []string
	for _, m := range members {
		if slices.Contains(m.PeerURLs, c.Member.PeerURL) {
			added = true // by an earlier start that did not finish
			continue
		}
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
	return nil
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
