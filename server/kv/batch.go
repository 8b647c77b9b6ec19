package kv

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// patience, unless a test sets another one, is the maximum time for which transactions wait for the answer to earlier
// ones. A request that hangs must not hold up the others.
const patience = 20 * time.Millisecond

// part is a transaction that may share an etcd transaction with others.
type part struct {
	ctx context.Context // of the caller
	Txn
	limit  time.Time   // the caller waits no longer
	answer chan answer // has room for one
}

type answer struct {
	Result
	err error
}

// queue makes transactions wait while others are under way, so that they share the next etcd transaction. A round is the
// transactions that are sent at one moment. If no round is under way, a transaction goes at once, as a round of its own.
type queue struct {
	mu       sync.Mutex
	underWay int // the number of the round whose end the queue waits for, 0 for none
	last     int // the number of the last round
	waiting  []*part
	late     *time.Timer // ends the wait while there are waiting parts
	patience time.Duration
}

// enter begins a round and returns its number, or puts the part into the queue and returns 0. The queue calls
// roundEnded with the number of a round that is late.
func (q *queue) enter(p *part, roundEnded func(round int)) (round int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.underWay == 0 {
		return q.begin()
	}
	if q.waiting = append(q.waiting, p); len(q.waiting) == 1 {
		round := q.underWay
		q.late = time.AfterFunc(cmp.Or(q.patience, patience), func() { roundEnded(round) })
	}
	return 0
}

func (q *queue) begin() int {
	q.last++
	q.underWay = q.last
	return q.underWay
}

// next ends the wait for a round, and begins the next one with the returned parts. It returns 0 if nobody waits for
// that round.
func (q *queue) next(round int) (parts []*part, number int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.underWay != round {
		return nil, 0 // it was late, so another one has begun
	}
	q.underWay = 0
	if q.late != nil {
		q.late.Stop()
		q.late = nil
	}
	if len(q.waiting) == 0 {
		return nil, 0
	}
	parts, q.waiting = q.waiting, nil
	return parts, q.begin()
}

// leave removes a part that has not been sent yet.
func (q *queue) leave(p *part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(other *part) bool { return other == p })
}

// commit runs a transaction until a limit, together with others that wait at the same moment.
func (s *Store) commit(ctx context.Context, txn Txn, limit time.Time) (Result, error) {
	if !txn.combines() {
		return s.send(ctx, txn)
	}
	p := &part{ctx, txn, limit, make(chan answer, 1)}
	if round := s.queue.enter(p, s.roundEnded); round != 0 {
		defer s.roundEnded(round)
		return s.send(ctx, txn)
	}
	select {
	case a := <-p.answer:
		return a.Result, a.err
	case <-ctx.Done():
		s.queue.leave(p)
		return Result{}, plainError(ctx.Err())
	}
}

// roundEnded begins the next round after one that has ended or is late.
func (s *Store) roundEnded(round int) {
	if parts, next := s.queue.next(round); next != 0 {
		go s.sendRound(parts, next)
	}
}

// sendRound sends parts, and ends when all of them have their answers.
func (s *Store) sendRound(parts []*part, round int) {
	defer s.roundEnded(round)
	var sending sync.WaitGroup
	batches := divide(parts)
	for _, batch := range batches[1:] {
		sending.Go(func() { s.answer(batch) })
	}
	s.answer(batches[0])
	sending.Wait()
}

// answer sends parts as one etcd transaction, even if some of the callers stop waiting. It ends with the limit of the
// first one, whose next steps could otherwise come before its transaction. If etcd refuses it, one of them may be the
// reason, so each one then goes alone, if its caller still waits.
func (s *Store) answer(parts []*part) {
	if len(parts) == 1 {
		result, err := s.send(parts[0].ctx, parts[0].Txn)
		parts[0].answer <- answer{result, err}
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), parts[0].limit)
	defer cancel()
	txns := make([]Txn, len(parts))
	for i, p := range parts {
		txns[i] = p.Txn
	}
	results, err := s.together(ctx, txns)
	if refused(err) {
		var sending sync.WaitGroup
		for _, p := range parts {
			sending.Go(func() { s.again(p, err) })
		}
		sending.Wait()
		return
	}
	for i, p := range parts {
		if err != nil {
			p.answer <- answer{err: err}
		} else {
			p.answer <- answer{Result: results[i]}
		}
	}
}

// again sends a part alone after the refusal of the shared transaction. A store without space is an exception: etcd
// carries out the first transaction that exceeds its quota, and then refuses it. So a part that puts something is not
// sent again, and the outcome of any other one is known only if its conditions still hold.
func (s *Store) again(p *part, refusal error) {
	full := errors.Is(refusal, ErrFull)
	if full && p.puts() {
		p.answer <- answer{err: refusal}
		return
	}
	result, err := s.send(p.ctx, p.Txn)
	if err == nil && full && !result.Held {
		result, err = Result{}, refusal
	}
	p.answer <- answer{result, err}
}

// refused reports whether etcd rejected a transaction because of its contents or its size. Unless the store is full, it
// has changed nothing.
func refused(err error) bool {
	var known rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &known) {
		code = known.Code()
	}
	switch code {
	case codes.NotFound, codes.InvalidArgument, codes.PermissionDenied, codes.ResourceExhausted:
		return true
	}
	return false
}

// send runs one transaction.
func (s *Store) send(ctx context.Context, txn Txn) (Result, error) {
	response, err := s.carryOut(ctx, txn.request())
	if err != nil {
		return Result{}, err
	}
	return resultOf(response.Succeeded, response.Header.Revision, response.Responses), nil
}

// together runs independent transactions as one, each with its own conditions.
func (s *Store) together(ctx context.Context, txns []Txn) ([]Result, error) {
	whole := &pb.TxnRequest{Success: make([]*pb.RequestOp, len(txns))}
	for i, txn := range txns {
		whole.Success[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txn.request()}}
	}
	response, err := s.carryOut(ctx, whole)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(txns))
	for i, r := range response.Responses {
		own := r.GetResponseTxn()
		results[i] = resultOf(own.GetSucceeded(), response.Header.Revision, own.GetResponses())
	}
	return results, nil
}

// callOptions are those that etcd's client gives its own calls.
var callOptions = []grpc.CallOption{grpc.WaitForReady(true), grpc.MaxCallSendMsgSize(2 << 20), grpc.MaxCallRecvMsgSize(math.MaxInt32)}

func (s *Store) carryOut(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	response, err := s.txns.Txn(ctx, r, callOptions...)
	if err != nil {
		return nil, plainError(clientv3.ContextError(ctx, err))
	}
	return response, nil
}
