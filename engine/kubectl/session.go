package kubectl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"

	"podwalk/engine/apiserver/serve"
	"podwalk/engine/stage"
)

// User is somebody that the kubeconfig has credentials of.
type User struct {
	Name   string
	Groups []string
	// Token is sent instead of a client certificate.
	Token string
	// Anonymous users have no credentials at all.
	Anonymous bool
}

// Admin is the cluster's administrator, as kubeadm's admin.conf has it.
var Admin = User{Name: "kubernetes-admin", Groups: []string{"system:masters"}}

// Config of a session.
type Config struct {
	// Namespace of the contexts; default where empty.
	Namespace string
	// Users of the kubeconfig; the first one's context is the current one. Admin where empty.
	Users []User
	// Client is who this kubectl is on the diagrams.
	Client stage.Component
	// Children is how many kubectl processes may run at once; 4 where zero.
	Children int
	// Patience is how much virtual time a command without a timeout of its own may wait
	// before it is stopped; 10 minutes where zero.
	Patience time.Duration
	// Editor is the program that `kubectl edit` opens; where empty, edit is refused with
	// what to use instead.
	Editor string
	// Program is re-executed as kubectl; this program where empty.
	Program string
	// RealTime is for clients that are nobody's children: as long as one of them is
	// connected, virtual time goes at the pace of real time, whatever they wait for or poll.
	RealTime bool
}

// ClusterName is the cluster's name in the kubeconfig.
const ClusterName = "podwalk"

// Session is a workplace: a listener, a kubeconfig, a home directory. It is safe for
// concurrent use.
type Session struct {
	cfg     Config
	shared  *serve.Shared
	dir     string
	ca      *authority
	server  *http.Server
	address string
	slots   chan struct{}

	mu      sync.Mutex
	history []string
	next    int
	waiting map[int]waiter
	pids    map[int]bool // of the children
	pacer   *pacer       // of a session in real time
}

// Open starts a session on a cluster.
func Open(shared *serve.Shared, cfg Config) (*Session, error) {
	if len(cfg.Users) == 0 {
		cfg.Users = []User{Admin}
	}
	if cfg.Children == 0 {
		cfg.Children = 4
	}
	if cfg.Patience == 0 {
		cfg.Patience = 10 * time.Minute
	}
	if cfg.Namespace == "" {
		cfg.Namespace = "default"
	}
	if cfg.Program == "" {
		p, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("podwalk cannot find its own program to run as kubectl: %w", err)
		}
		cfg.Program = p
	}
	dir, err := os.MkdirTemp("", "podwalk-")
	if err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, shared: shared, dir: dir, slots: make(chan struct{}, cfg.Children), waiting: map[int]waiter{}, pids: map[int]bool{}}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	sessions.Lock()
	defer sessions.Unlock()
	sessions.open[s] = true
	return s, nil
}

// sessions are those that are open in this process.
var sessions = struct {
	sync.Mutex
	open map[*Session]bool
}{open: map[*Session]bool{}}

// CloseAll closes every session that is still open: the process is about to end.
func CloseAll() {
	sessions.Lock()
	all := slices.Collect(maps.Keys(sessions.open))
	sessions.Unlock()
	for _, s := range all {
		_ = s.Close()
	}
}

func (s *Session) start() (err error) {
	if s.ca, err = newAuthority("kubernetes"); err != nil {
		return err
	}
	cert, err := s.ca.server(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("podwalk cannot listen on loopback for its kubectl: %w", err)
	}
	s.address = l.Addr().String()
	s.server = &http.Server{
		Handler: &serve.Handler{
			Backend: s.shared, Client: s.cfg.Client, Verify: s.ca.verify, Address: s.address,
		},
		ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
		ErrorLog: discard,
	}
	if s.cfg.RealTime {
		s.pacer = newPacer(s.shared)
		s.server.ConnState = s.pacer.connection
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	go func() { _ = s.server.Serve(tls.NewListener(l, config)) }()
	s.shared.SetQuiet(s.quiet)
	return s.kubeconfigs()
}

// Close ends the session: the listener, the children that still run, the directory.
func (s *Session) Close() error {
	sessions.Lock()
	delete(sessions.open, s)
	sessions.Unlock()
	s.mu.Lock()
	for _, w := range s.waiting {
		w.cancel()
	}
	for pid := range s.pids { // they must not write into a directory that is being removed
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	s.mu.Unlock()
	err := s.server.Close()
	if s.pacer != nil {
		s.pacer.stop()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Dir is the working directory of the children: manifests written there can be named.
func (s *Session) Dir() string { return filepath.Join(s.dir, "work") }

// Address is the host:port of the listener.
func (s *Session) Address() string { return s.address }

// Kubeconfig is the path of the session's kubeconfig.
func (s *Session) Kubeconfig() string { return filepath.Join(s.dir, "home", ".kube", "config") }

// kubeconfigs writes the session's kubeconfig: one context for each user.
func (s *Session) kubeconfigs() error {
	for _, d := range []string{filepath.Join("home", ".kube"), "work", "cache"} {
		if err := os.MkdirAll(filepath.Join(s.dir, d), 0o700); err != nil {
			return err
		}
	}
	all := s.emptyConfig()
	for i, u := range s.cfg.Users {
		name := u.Name + "@" + ClusterName
		if err := s.addUser(all, name, u); err != nil {
			return err
		}
		if i == 0 {
			all.CurrentContext = name
		}
	}
	return clientcmd.WriteToFile(*all, s.Kubeconfig())
}

func (s *Session) emptyConfig() *api.Config {
	c := api.NewConfig()
	c.Clusters[ClusterName] = &api.Cluster{Server: "https://" + s.address, CertificateAuthorityData: s.ca.pem}
	return c
}

func (s *Session) addUser(c *api.Config, context string, u User) error {
	info := &api.AuthInfo{Token: u.Token}
	if u.Token == "" && !u.Anonymous {
		cert, key, err := s.ca.issue(u.Name, u.Groups)
		if err != nil {
			return err
		}
		info.ClientCertificateData, info.ClientKeyData = cert, key
	}
	c.AuthInfos[u.Name] = info
	c.Contexts[context] = &api.Context{Cluster: ClusterName, AuthInfo: u.Name, Namespace: s.cfg.Namespace}
	return nil
}

// WriteKubeconfig writes a kubeconfig for one user to a file of the working directory.
func (s *Session) WriteKubeconfig(name string, u User) error {
	c := s.emptyConfig()
	c.CurrentContext = u.Name + "@" + ClusterName
	if err := s.addUser(c, c.CurrentContext, u); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*c, filepath.Join(s.Dir(), filepath.FromSlash(name)))
}

// AuthorityPEM is the certificate of the cluster's certificate authority.
func (s *Session) AuthorityPEM() []byte { return s.ca.pem }

// WriteFile puts a file into the working directory.
func (s *Session) WriteFile(name string, data []byte) error {
	p := filepath.Join(s.Dir(), filepath.FromSlash(name))
	if rel, err := filepath.Rel(s.Dir(), p); err != nil || strings.HasPrefix(rel, "..") {
		return fmt.Errorf("%s is outside of the session's directory", name)
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return err
	}
	return os.WriteFile(p, data, 0o600)
}

// History returns the command lines that were run, oldest first.
func (s *Session) History() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.history...)
}

// Remember appends a line to the history, unless it repeats the last one.
func (s *Session) Remember(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.history); line != "" && (n == 0 || s.history[n-1] != line) {
		s.history = append(s.history, line)
	}
}

// Complete returns what can follow a command line that is being typed: verbs, resources,
// names, flags, as kubectl's own completion knows them. The last word is to be replaced.
func (s *Session) Complete(ctx context.Context, line string) []string {
	args, err := Words(line)
	if err != nil {
		return nil
	}
	args = command(args)
	if line == "" || strings.HasSuffix(line, " ") || len(args) == 0 {
		args = append(args, "")
	}
	r := s.exec(ctx, append([]string{"__completeNoDesc"}, args...), nil)
	var out []string
	for l := range strings.Lines(r.Stdout) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, ":") {
			break
		}
		if l != "" && !strings.HasPrefix(l, "_activeHelp_") {
			out = append(out, l)
		}
	}
	return out
}

// command drops the program's name from a command line: kubectl, or its alias k.
func command(args []string) []string {
	if len(args) > 0 && (args[0] == "kubectl" || args[0] == "k") {
		return args[1:]
	}
	return args
}
