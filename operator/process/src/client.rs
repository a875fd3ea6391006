//! The two connections to the API server.
//!
//! One is for watches of the client library, which end when nothing comes for a while; one is for everything that has a
//! time limit where it is sent. Retries are the operator's own (per key, with backoff): the client library's would repeat
//! creations inside a call and could not be ended. The beginning of a watch has a time limit in both, that of a list in the
//! first.
//!
//! | module | what it adds to the client library |
//! |---|---|
//! | `dead_path` | connections whose other end is gone are closed |
//! | `retry_after` | a refusal in plain text says how long to wait |
//! | `start` | a time limit for starting a watch or a list |

mod dead_path;
mod retry_after;
mod start;

use std::{path::Path, sync::Arc, time::Duration};

use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Builder, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _},
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use thiserror::Error;
use tower::{BoxError, ServiceBuilder};

use self::{dead_path::close_dead_paths, retry_after::KeepRetryAfter, start::LimitStart};
use crate::{
    metrics::{Requests, requests::Counting},
    server_time::{Dating, ServerTime},
};

/// Time limit of one request, from sending it to the last byte of the reply. Longer than the ten
/// seconds an admission webhook may take by default, so that its verdict still arrives.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The longest that nothing comes on a connection for lists and watches before it is given up. Longer than a quiet watch of a
/// minute lasts, and the five seconds after which the client library begins it anew.
const SILENCE: Duration = Duration::from_secs(75);

/// How long a list may take to begin on the client for watches.
const LIST_START: Duration = Duration::from_secs(30);

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection is kept that nobody uses. After a burst there are dozens, each with buffers of its own, and the API
/// server closes them only after 90 seconds.
const UNUSED: Duration = Duration::from_secs(30);

/// The environment variable that names the namespace of a Pod, as its manifest fills it in.
const POD_NAMESPACE: &str = "POD_NAMESPACE";

/// The two clients, and where the process is.
#[derive(Clone)]
pub struct Clients {
    /// For lists and watches.
    pub watch: Client,
    /// For everything that has a time limit where it is sent.
    pub work: Client,
    /// The namespace of this process: `$POD_NAMESPACE`; without it, that of the Pod's service account or
    /// of the kubeconfig's context.
    pub namespace: String,
    /// What counts the requests of both.
    pub requests: Arc<Requests>,
    /// What the answers to both say of the API server's time.
    pub server_time: Arc<ServerTime>,
}

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The kubeconfig file is of no use.
    #[error("kubeconfig {path}: {source}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// There is no kubeconfig, and this is no Pod.
    #[error("no --kubeconfig given: {0}")]
    Inferred(#[from] InferConfigError),
    /// The configuration cannot be turned into a client.
    #[error("cannot set up a client: {0}")]
    Client(#[from] kube::Error),
}

/// Sets up the clients: from the given kubeconfig file; without one, from that of `$KUBECONFIG` or
/// `~/.kube/config`, or as a Pod. Sends nothing. What they will send is counted by `requests`, and when it is answered
/// is noted in `server_time`.
///
/// # Errors
///
/// See [`ClientError`].
pub async fn connect(
    kubeconfig: Option<&Path>,
    requests: Arc<Requests>,
    server_time: Arc<ServerTime>,
) -> Result<Clients, ClientError> {
    let mut config = match kubeconfig {
        Some(path) => from_file(path).await?,
        None => Config::infer().await?,
    };
    let own = std::env::var(POD_NAMESPACE).ok().filter(|namespace| !namespace.is_empty());
    let namespace = own.unwrap_or_else(|| config.default_namespace.clone());
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.default_retry = false;
    let layers = Layers {
        counting: Counting(Arc::clone(&requests)),
        dating: Dating(Arc::clone(&server_time)),
    };
    let work = client(config.clone(), &layers, LimitStart { others: None })?;
    config.read_timeout = Some(SILENCE);
    let watch = client(config, &layers, LimitStart { others: Some(LIST_START) })?;
    Ok(Clients { watch, work, namespace, requests, server_time })
}

/// What is around both clients.
struct Layers {
    counting: Counting,
    dating: Dating,
}

fn client(config: Config, layers: &Layers, start: LimitStart) -> Result<Client, kube::Error> {
    if config.proxy_url.is_some() {
        let client = ClientBuilder::try_from(config)?.with_layer(&layers.dating);
        let client = client.with_layer(&KeepRetryAfter).with_layer(&start);
        return Ok(client.with_layer(&layers.counting).build());
    }
    direct(config, layers, start)
}

/// What the library makes of a configuration, but for two things: what is written to a connection is sent at once, and
/// connections with a dead path are closed. A request that is written in two parts would otherwise wait for the API server
/// to acknowledge the first, which a system puts off by 40 ms.
fn direct(config: Config, layers: &Layers, start: LimitStart) -> Result<Client, kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    close_dead_paths(&mut connector);
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let service = ServiceBuilder::new()
        .layer(&layers.counting)
        .layer(start)
        .layer(KeepRetryAfter)
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        // Next to the connection: what a token takes to be renewed is not the API server's time.
        .layer(&layers.dating)
        .service(
            Builder::new(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(UNUSED)
                .build::<_, Body>(connector),
        );
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

async fn from_file(path: &Path) -> Result<Config, ClientError> {
    let failed = |source| ClientError::Kubeconfig { path: path.display().to_string(), source };
    let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use http_body_util::Full;
    use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::{
        io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
        net::{TcpListener, TcpStream},
        time::{pause, timeout},
    };

    use super::*;

    const VERSION: &str = r#"{"major": "1", "minor": "36", "gitVersion": "", "gitCommit": "",
        "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}"#;

    /// Of the time that passes here by itself once nothing else happens.
    const NEVER: Duration = Duration::from_hours(24);

    /// The clients of a kubeconfig whose cluster has these fields.
    async fn connected(cluster: &str) -> Clients {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let contents = format!(
            "{{current-context: it, clusters: [{{name: it, cluster: {{{cluster}}}}}], \
             contexts: [{{name: it, context: {{cluster: it, user: it}}}}], \
             users: [{{name: it, user: {{}}}}]}}"
        );
        fs::write(&kubeconfig, contents).unwrap();
        let requests = Requests::new("test", &[]).unwrap();
        connect(Some(&kubeconfig), requests, ServerTime::new(Duration::ZERO)).await.unwrap()
    }

    /// Answers all requests of a connection.
    async fn answer(stream: TcpStream) -> hyper::Result<()> {
        let answer =
            |_| async { Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(VERSION)))) };
        http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await
    }

    #[tokio::test]
    async fn connection_that_nobody_uses_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clients = connected(&format!("server: 'http://{address}'")).await;
        let served = tokio::spawn(async move { answer(listener.accept().await.unwrap().0).await });
        clients.work.apiserver_version().await.unwrap();
        pause();
        timeout(NEVER, served).await.expect("it stays").unwrap().unwrap();
    }

    #[tokio::test]
    async fn proxy_of_the_kubeconfig_is_used() {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cluster = format!(
            "server: 'http://api.invalid:6443', proxy-url: 'http://{}'",
            proxy.local_addr().unwrap()
        );
        let clients = connected(&cluster).await;
        let asked = tokio::spawn(async move {
            let mut stream = BufReader::new(proxy.accept().await.unwrap().0);
            let mut asked = String::new();
            while !asked.ends_with("\r\n\r\n") {
                stream.read_line(&mut asked).await.unwrap();
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            tokio::spawn(answer(stream.into_inner()));
            asked
        });
        clients.work.apiserver_version().await.unwrap();
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("CONNECT api.invalid:6443 HTTP/1.1\r\n"), "{asked}");
    }
}
