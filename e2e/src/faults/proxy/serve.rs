//! The side of the operator: connections, and the way of one call through the proxy.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use http::uri::PathAndQuery;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::call::{Call, Scope};
use super::dead_path::Paths;
use super::fault::{Fault, Injection, Matcher, Rule};
use super::log::{Entry, Log};
use super::upstream::Upstream;
use super::{date, path, status, watch};
use crate::testenv::cluster::Cluster;

/// What all connections share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) log: Arc<Log>,
    rules: Mutex<Vec<Arc<Rule>>>,
    process: AtomicU32,
    pub(super) dates: date::Dates,
    scope: Scope,
    pub(super) upstream: Upstream,
    pub(super) paths: Paths,
    /// Ends the watches that are under way.
    pub(super) ends: tokio::sync::watch::Sender<()>,
    /// Calls on their way to the API server and back. A client that goes away does not call them back.
    forwarded: Mutex<JoinSet<()>>,
}

type Reply = http::Response<UnsyncBoxBody<Bytes, hyper::Error>>;

impl State {
    pub(super) fn new(cluster: &Cluster, scope: Scope) -> Result<Self> {
        Ok(Self {
            log: Arc::default(),
            rules: Mutex::default(),
            process: AtomicU32::new(1),
            dates: date::Dates::default(),
            scope,
            upstream: Upstream::new(cluster)?,
            paths: Paths::default(),
            ends: tokio::sync::watch::Sender::new(()),
            forwarded: Mutex::default(),
        })
    }

    pub(super) fn process(&self, number: u32) {
        self.process.store(number, Ordering::Relaxed);
    }

    pub(super) fn inject(
        &self,
        matches: Matcher,
        which: RangeInclusive<usize>,
        fault: Fault,
    ) -> Injection {
        let rule = Arc::new(Rule::new(matches, which, fault));
        let mut rules = locked(&self.rules);
        rules.retain(|rule| !rule.is_over());
        rules.push(Arc::clone(&rule));
        Injection(rule)
    }

    pub(super) fn abort(&self) {
        locked(&self.forwarded).abort_all();
    }

    /// Notes a call and finds the fault that is meant for it.
    fn arrives(&self, call: &Arc<Call>) -> (Entry, Option<Arc<Rule>>) {
        // Calls have the same order in the log and for all faults.
        let rules = locked(&self.rules);
        let entry = self.log.add(call);
        // Each of them counts the call.
        let meant: Vec<&Arc<Rule>> = rules.iter().filter(|rule| rule.befalls(call)).collect();
        let first = meant.first().map(|rule| Arc::clone(rule));
        (entry, first)
    }

    /// Answers one call. An error breaks the client's connection.
    ///
    /// When the client goes away, this ends where it is: a call that is held then is never forwarded.
    async fn answer(self: Arc<Self>, request: http::Request<Incoming>) -> Result<Reply> {
        let mut reply = Arc::clone(&self).pass(request).await?;
        date::shift(reply.headers_mut(), self.dates.next());
        Ok(reply)
    }

    /// Takes one call through the proxy.
    async fn pass(self: Arc<Self>, request: http::Request<Incoming>) -> Result<Reply> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let call = Arc::new(Call::of(self.process.load(Ordering::Relaxed), &head, body));
        let (entry, rule) = self.arrives(&call);
        let fault = rule.as_ref().map(|rule| (rule, rule.fault));

        match fault {
            Some((rule, Fault::HoldRequest)) => rule.hold().await,
            Some((rule, Fault::Delay(time))) => {
                rule.taken();
                tokio::time::sleep(time).await;
            }
            Some((rule, Fault::Answer { status, retry_after })) => {
                let code = http::StatusCode::from_u16(status)?;
                rule.taken();
                let words = status::words(&call);
                return Ok(whole(&entry, status::refusal(&call, code, retry_after, &words)));
            }
            Some((rule, Fault::Overloaded { retry_after })) => {
                rule.taken();
                return Ok(whole(&entry, status::overloaded(retry_after)));
            }
            Some((rule, Fault::Refuse { status, message })) => {
                let code = http::StatusCode::from_u16(status)?;
                rule.taken();
                return Ok(whole(&entry, status::refusal(&call, code, None, message)));
            }
            _ => {}
        }
        if call.is_watch() {
            self.watch(head, &call, entry, rule).await
        } else {
            let reply = self.forward(head, &call, &entry, rule.clone()).await?;
            replied(rule.as_deref()).await?;
            Ok(whole(&entry, reply))
        }
    }

    async fn watch(
        &self,
        head: http::request::Parts,
        call: &Call,
        entry: Entry,
        rule: Option<Arc<Rule>>,
    ) -> Result<Reply> {
        let (path, ends) = (self.path(&head)?, self.ends.subscribe());
        let reply = self.upstream.open(head, path, call.body.clone()).await?;
        entry.line().served(reply.status(), None);
        replied(rule.as_deref()).await?;
        entry.answered(&reply);
        Ok(reply.map(|body| StreamBody::new(watch::passed(body, rule, ends, entry)).boxed_unsync()))
    }

    /// Forwards a call. Once that has begun, the API server sees all of it and its answer is noted,
    /// whether or not the client still waits: so it is with a request that is on the wire.
    async fn forward(
        self: &Arc<Self>,
        head: http::request::Parts,
        call: &Call,
        entry: &Entry,
        rule: Option<Arc<Rule>>,
    ) -> Result<http::Response<Bytes>> {
        let (path, body, line) = (self.path(&head)?, call.body.clone(), entry.line().clone());
        let (upstream, (answer, reply)) = (self.upstream.clone(), tokio::sync::oneshot::channel());
        self.spawn(async move {
            if let Some(rule) = rule.filter(|rule| rule.fault == Fault::HoldOnItsWay) {
                rule.hold().await;
            }
            // Nobody may wait for it any more.
            let _ = answer.send(upstream.call(head, path, body, line).await);
        });
        reply.await.context("the proxy is closed")?
    }

    fn spawn(&self, forwarding: impl Future<Output = ()> + Send + 'static) {
        let mut forwarded = locked(&self.forwarded);
        while forwarded.try_join_next().is_some() {}
        forwarded.spawn(forwarding);
    }

    /// The path at the API server.
    fn path(&self, head: &http::request::Parts) -> Result<PathAndQuery> {
        let given = head.uri.path_and_query().context("a request without a path")?;
        let Scope::Namespace(namespace) = &self.scope else { return Ok(given.clone()) };
        if head.method != http::Method::GET {
            return Ok(given.clone());
        }
        let Some(narrowed) = path::narrowed(given.path(), namespace) else {
            return Ok(given.clone());
        };
        let query = given.query().map(|query| format!("?{query}")).unwrap_or_default();
        Ok(format!("{narrowed}{query}").parse()?)
    }
}

/// What a fault does when the reply is there.
async fn replied(rule: Option<&Rule>) -> Result<()> {
    let Some(rule) = rule else { return Ok(()) };
    match rule.fault {
        Fault::HoldReply => rule.hold().await,
        Fault::Pass => rule.taken(),
        Fault::DropReply => {
            rule.taken();
            bail!("the reply is dropped");
        }
        Fault::HoldRequest
        | Fault::HoldOnItsWay
        | Fault::FreezeWatch
        | Fault::Answer { .. }
        | Fault::Overloaded { .. }
        | Fault::Refuse { .. }
        | Fault::Delay(_) => {}
    }
    Ok(())
}

fn whole(entry: &Entry, reply: http::Response<Bytes>) -> Reply {
    entry.answered(&reply);
    reply.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync())
}

/// The certificate that everybody expects on 127.0.0.1, for both versions of HTTP.
pub(super) fn tls(cluster: &Cluster) -> Result<TlsAcceptor> {
    let folder = cluster.serving_certificate();
    let certificate = CertificateDer::from_pem_file(folder.join("tls.crt"))?;
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key"))?;
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves until it is dropped, and all connections with it.
pub(super) async fn serve(listener: TcpListener, tls: TlsAcceptor, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(talk(tls.clone(), stream, Arc::clone(&state)));
    }
}

/// Whatever goes wrong with a connection is the client's to notice.
async fn talk(tls: TlsAcceptor, stream: TcpStream, state: Arc<State>) {
    let _ = stream.set_nodelay(true);
    let Ok(path) = state.paths.opened(&stream) else { return };
    let serving = async {
        let Ok(stream) = tls.accept(stream).await else { return };
        let service = service_fn(|request| Box::pin(Arc::clone(&state).answer(request)));
        let server = auto::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(TokioIo::new(stream), service).await;
    };
    path.serve(serving).await;
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
