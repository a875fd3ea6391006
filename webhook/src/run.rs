//! Everything together, from start to end.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use thiserror::Error;
use tokio::{sync::watch, task::JoinSet};
use trainjob_process::{
    Servers, Shown,
    client::Clients,
    config::{
        Config,
        admission::{Admission, CertificateSource},
    },
    health::Readiness,
    pages, tls,
};

use crate::{
    certificate::{files, self_managed::SelfManaged, serving::Serving, settings::Settings},
    handler::{AdmissionHandler, Rules},
    kinds::KINDS,
    lookup::Lookup,
    metrics::Metrics,
    namespaces::Namespaces,
    runtimes::Runtimes,
    server::Server,
};

/// What readiness calls the certificate.
const CERTIFICATE: &str = "certificate";

/// How long new connections are taken after the end has been announced: until every API server has
/// heard that this replica is not ready any more.
const LINGER: Duration = Duration::from_secs(5);

/// Why the server ended.
#[derive(Debug, Error)]
pub enum RunError {
    /// It cannot listen, or not any more.
    #[error("cannot serve: {0}")]
    Server(#[source] io::Error),
    /// There are no metrics.
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// There is no TLS.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A task that never ends has ended.
    #[error("{0} ended unexpectedly")]
    TaskEnded(&'static str),
}

/// Runs the server until `stop` becomes true.
///
/// # Errors
///
/// See [`RunError`].
pub async fn run(
    config: Config,
    clients: Clients,
    mut stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let readiness = Readiness::awaiting(KINDS.into_iter().chain([CERTIFICATE]));
    let (drained, until_drained) = watch::channel(false);
    let metrics = Metrics::new()?;
    let serving = Serving::default();
    let shown = Shown {
        metrics: metrics.registry(),
        certificates: Arc::new(serving.clone()),
        client: &clients.work,
    };
    let beside = Servers::start(config.served(), &readiness, shown, &until_drained).await;
    let mut beside = beside.map_err(RunError::Server)?;

    let mut tasks = JoinSet::new();
    follow_certificate(&mut tasks, &config.admission, &clients, &serving, &metrics);
    let runtimes = Arc::new(Runtimes::default());
    let namespaces = Arc::new(Namespaces::default());
    metrics.show(Arc::clone(&runtimes), Arc::clone(&namespaces))?;
    clients.requests.register(metrics.registry())?;
    watch(&mut tasks, (&runtimes, &namespaces), &clients, &readiness, &metrics);
    await_certificate(&mut tasks, &serving, &readiness);

    let listener = pages::listen(config.admission.address).await.map_err(RunError::Server)?;
    tracing::info!(address = %config.admission.address, "serving admission");
    let lookup = Lookup::new(runtimes, namespaces, clients.work);
    let handler = AdmissionHandler::new(rules(&config), lookup);
    let tls = tls::acceptor(&config.admission.tls, Arc::new(serving))?;
    let server = Server::new(handler, metrics, tls).map_err(RunError::Server)?;
    let (closing, closed) = watch::channel(false);
    let serving_ends = server.serve(listener, stop.clone(), closed);
    let farewell = async {
        // Whoever could say so is gone only when the process is.
        let _ = stop.wait_for(|stop| *stop).await;
        readiness.shutting_down();
        tracing::info!("stopping");
        tokio::time::sleep(LINGER).await;
        closing.send_replace(true);
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = serving_ends => ended.map_err(RunError::Server),
        () = farewell => Ok(()),
        ended = tasks.join_next() => {
            let task = ended.and_then(Result::ok).unwrap_or("a task");
            Err(RunError::TaskEnded(task))
        }
        Some(ended) = beside.ended() => ended.map_err(RunError::Server),
    };
    tasks.shutdown().await;
    drained.send_replace(true);
    while let Some(ended) = beside.ended().await {
        ended.map_err(RunError::Server)?;
    }
    ended
}

fn watch(
    tasks: &mut JoinSet<&'static str>,
    (runtimes, namespaces): (&Arc<Runtimes>, &Arc<Namespaces>),
    clients: &Clients,
    readiness: &Readiness,
    metrics: &Arc<Metrics>,
) {
    let (runtimes, namespaces) = (Arc::clone(runtimes), Arc::clone(namespaces));
    let client = clients.watch.clone();
    let (readiness, metrics) = (readiness.clone(), Arc::clone(metrics));
    tasks.spawn(async move {
        let unreachable = AtomicBool::new(false);
        let [restarts @ .., of_namespaces] = metrics.restarts().each_ref();
        tokio::join!(
            runtimes.watch(&client, &readiness, restarts, &unreachable),
            namespaces.watch(&client, &readiness, of_namespaces, &unreachable),
        );
        "the watches"
    });
}

/// Says when there is a certificate to serve with.
fn await_certificate(tasks: &mut JoinSet<&'static str>, serving: &Serving, readiness: &Readiness) {
    let (serving, readiness) = (serving.clone(), readiness.clone());
    tasks.spawn(async move {
        // It cannot fail while `serving` is here.
        let _ = serving.subscribe().wait_for(Option::is_some).await;
        readiness.set(CERTIFICATE, true);
        std::future::pending().await
    });
}

fn rules(config: &Config) -> Rules {
    Rules {
        field_updates: config.admission.field_updates,
        deadline_clock: config.settings.deadline_clock,
        limits: config.admission.limits,
    }
}

/// Keeps the serving certificate up to date, wherever it comes from.
fn follow_certificate(
    tasks: &mut JoinSet<&'static str>,
    admission: &Admission,
    clients: &Clients,
    serving: &Serving,
    metrics: &Arc<Metrics>,
) {
    let (serving, metrics) = (serving.clone(), Arc::clone(metrics));
    match admission.certificate.clone() {
        CertificateSource::Files { directory, poll_interval } => tasks.spawn(async move {
            files::follow(directory, poll_interval, serving, metrics).await;
            "the certificate files"
        }),
        CertificateSource::SelfManaged(own) => {
            let settings = Settings {
                namespace: clients.namespace.clone(),
                secret: own.secret,
                service: own.service,
                names: own.names,
                authority_lifetime: own.authority_lifetime,
                authority_renew_before: own.renew_before,
                lifetime: own.lifetime,
                renew_before: own.renew_before,
                bundle_lead: own.bundle_lead,
            };
            let managed = SelfManaged { client: clients.work.clone(), settings, serving, metrics };
            tasks.spawn(async move {
                // On the heap: its future is large.
                Box::pin(managed.run()).await;
                "the certificate authority"
            })
        }
    };
}
