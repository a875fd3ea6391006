//! What the tests of the operator share: a box with the operator in it, a namespace for each test,
//! and faults to put in its way.
//!
//! A test is a scenario about one [`Tenant`]: create a job, wait for what must happen, see that what
//! must not happen does not. When it fails, [`Tenant::explained`] adds what the cluster and the
//! operator have to say about it.

mod policy;
mod requests;
mod reviews;
pub mod shared;
pub mod status;
pub mod tenant;
mod test_webhook;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::faults::proxy::{Proxy, Scope};
use crate::testenv::apply::apply;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::operator::{Operator, OperatorOptions, SERVICE_ACCOUNT, install_operator_rbac};

use self::shared::Shared;

pub use policy::{Denial, Operation};
pub use requests::{Request, audit_flags, noted_requests};
pub use reviews::Reviews;
pub use tenant::Tenant;
pub use test_webhook::{TestWebhook, Verdict};

/// Long enough for two cores that build something else at the same time.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// How late the operator may be on such a machine. It is never early.
pub const LATE: i64 = 5;

/// The namespace of the operator.
pub const SYSTEM: &str = "kubeflow-system";

/// The user that the operator is.
pub const OPERATOR_USER: &str = "system:serviceaccount:kubeflow-system:trainjob-operator";

/// A ClusterTrainingRuntime whose Pods run until they are stopped, which takes them less than a
/// second.
pub const RUNS: &str = "runs";
/// One whose Pods complete after a second.
pub const COMPLETES: &str = "completes";
/// A runtime of MPI, whose two Pods complete after a second.
pub const MPI: &str = "mpi";
/// One whose Pods complete after a second, and whose JobSets are deleted a second later.
pub const VANISHES: &str = "vanishes";
/// One whose Pods fail after a second.
pub const FAILS: &str = "fails";
/// One whose Pods do not react to SIGTERM and are killed after [`STUBBORN_SECONDS`].
pub const STUBBORN: &str = "stubborn";
/// The grace period of the Pods of [`STUBBORN`].
pub const STUBBORN_SECONDS: i64 = 8;

/// Between two looks of [`consistently`].
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A box that has everything the operator needs, and at most one operator.
#[derive(Debug)]
pub struct World {
    /// The box.
    pub cluster: Cluster,
    kubeconfig: PathBuf,
    operator: Mutex<Option<Arc<Operator>>>,
}

impl World {
    /// Starts a box with the CRDs, the operator's permissions and the runtimes of this module, but
    /// without an operator.
    ///
    /// # Errors
    ///
    /// Something of that does not start or is refused.
    pub async fn without_operator(options: Options) -> Result<Self> {
        let jobset = options.jobset;
        let world = Self::without_crds(Options { crds: true, ..options }).await?;
        if jobset {
            apply(&world.cluster.client().await?, "default", runtimes()).await?;
        }
        Ok(world)
    }

    /// Starts a box with the operator's permissions and nothing else that it needs.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub async fn without_crds(mut options: Options) -> Result<Self> {
        options.apiserver_flags.extend(requests::audit_flags());
        let cluster = Cluster::start(options).await?;
        install_operator_rbac(&cluster, SYSTEM).await?;
        let kubeconfig = cluster.service_account_kubeconfig(SYSTEM, SERVICE_ACCOUNT).await?;
        Ok(Self { cluster, kubeconfig, operator: Mutex::default() })
    }

    /// Starts a box and an operator with its default configuration.
    ///
    /// # Errors
    ///
    /// Something does not start.
    pub async fn start() -> Result<Self> {
        let world = Self::without_operator(Options::default()).await?;
        world.start_operator().await?;
        Ok(world)
    }

    /// A box with an operator that has its default configuration, for all tests of a process that change neither.
    ///
    /// # Errors
    ///
    /// Something does not start.
    pub async fn shared() -> Result<Arc<Self>> {
        static SHARED: Shared<World> = Shared::new();
        SHARED.get(Self::start).await
    }

    /// Starts an operator as its own `ServiceAccount` and does not wait until it is ready. One that
    /// runs already is asked to stop.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub async fn launch_operator(&self, config_yaml: &str) -> Result<Arc<Operator>> {
        self.launch(self.kubeconfig.clone(), config_yaml).await
    }

    /// Like [`World::launch_operator`], with a proxy between the operator and the API server.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub async fn launch_operator_through(
        &self,
        proxy: &Proxy,
        config_yaml: &str,
    ) -> Result<Arc<Operator>> {
        self.launch(proxy.kubeconfig(&self.kubeconfig)?, config_yaml).await
    }

    async fn launch(&self, kubeconfig: PathBuf, config_yaml: &str) -> Result<Arc<Operator>> {
        self.stop_operator().await?;
        let options = OperatorOptions {
            config_yaml: config_yaml.to_owned(),
            kubeconfig: Some(kubeconfig),
            ..OperatorOptions::default()
        };
        let operator = Arc::new(Operator::start(&self.cluster, options).await?);
        self.slot().replace(Arc::clone(&operator));
        Ok(operator)
    }

    /// Starts an operator with its default configuration and waits until it is ready.
    ///
    /// # Errors
    ///
    /// It does not become ready.
    pub async fn start_operator(&self) -> Result<Arc<Operator>> {
        self.start_operator_with("").await
    }

    /// Starts an operator and waits until it is ready.
    ///
    /// # Errors
    ///
    /// It does not become ready.
    pub async fn start_operator_with(&self, config_yaml: &str) -> Result<Arc<Operator>> {
        let operator = self.launch_operator(config_yaml).await?;
        operator.wait_ready().await?;
        Ok(operator)
    }

    /// Asks the operator to stop, if one runs, and waits until it has.
    ///
    /// # Errors
    ///
    /// It does not end.
    pub async fn stop_operator(&self) -> Result<()> {
        let operator = self.slot().take();
        if let Some(operator) = operator {
            operator.sigterm()?;
            operator.wait(PATIENCE).await?;
        }
        Ok(())
    }

    /// Kills the operator, as a crash of its machine would.
    pub fn kill_operator(&self) {
        if let Some(operator) = self.slot().take() {
            operator.kill9();
        }
    }

    /// What the operator that runs serves as its metrics.
    ///
    /// # Errors
    ///
    /// None runs, or it does not answer.
    pub async fn metrics(&self) -> Result<String> {
        let operator = self.slot().clone().context("no operator runs")?;
        let server = format!("http://{}", operator.metrics_address());
        let client = kube::Client::try_from(kube::Config::new(server.parse()?))?;
        let request = http::Request::get("/metrics").body(Vec::new())?;
        Ok(client.request_text(request).await?)
    }

    /// Makes a namespace for one test.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn tenant(&self, prefix: &str) -> Result<Tenant<'_>> {
        Tenant::new(self, self.cluster.namespace(prefix).await?).await
    }

    /// Runs one test in a namespace of its own; a failure shows what there is to know about it.
    ///
    /// # Errors
    ///
    /// The test fails.
    pub async fn test<T>(
        &self,
        prefix: &str,
        body: impl AsyncFnOnce(&Tenant<'_>) -> Result<T>,
    ) -> Result<T> {
        let tenant = self.tenant(prefix).await?;
        // On the heap: the future of a long test is large.
        tenant.explained(Box::pin(body(&tenant))).await
    }

    /// What all operators of this box have logged, the last one last.
    ///
    /// # Errors
    ///
    /// A log cannot be read.
    pub fn logs(&self) -> Result<String> {
        let folder = self.cluster.folder();
        let mut logs: Vec<(u32, PathBuf)> = fs::read_dir(folder)?
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let number = path.file_name()?.to_str()?.strip_prefix("operator-")?;
                Some((number.strip_suffix(".log")?.parse().ok()?, path))
            })
            .collect();
        logs.sort();
        logs.into_iter().try_fold(String::new(), |mut text, (_, path)| {
            let bytes = fs::read(&path).with_context(|| format!("no {}", path.display()))?;
            text.push_str(&String::from_utf8_lossy(&bytes));
            Ok(text)
        })
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Operator>>> {
        self.operator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Boxes for tests that need one to themselves. There come to be as many as there are tests at a
/// time; each serves one test after the other, until one fails in it or leaves jobs behind.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Vec<World>>);

/// The boxes of all tests of a process.
pub static POOL: Pool = Pool(Mutex::new(Vec::new()));

impl Pool {
    /// Runs one test in a box to itself: one that is free, or a new one without an operator. The
    /// operator that the test leaves behind is asked to stop.
    ///
    /// # Errors
    ///
    /// The test fails.
    pub async fn test(
        &self,
        prefix: &str,
        body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>,
    ) -> Result<()> {
        let free = self.worlds().pop();
        let world = match free {
            Some(world) => world,
            None => Box::pin(World::without_operator(Options::default())).await?,
        };
        let is_clear = world
            .test(prefix, async |tenant| {
                // On the heap: the future of a long test is large.
                Box::pin(body(tenant)).await?;
                tenant.clear().await
            })
            .await?;
        world.stop_operator().await?;
        if is_clear {
            self.worlds().push(world);
        }
        Ok(())
    }

    /// Like [`Pool::test`], with an operator that runs behind a proxy.
    ///
    /// # Errors
    ///
    /// The test fails.
    pub async fn test_behind_proxy(
        &self,
        prefix: &str,
        body: impl AsyncFnOnce(&Tenant<'_>, &Proxy) -> Result<()>,
    ) -> Result<()> {
        self.test(prefix, async |tenant| {
            let proxy = Proxy::start(&tenant.world.cluster, Scope::Cluster).await?;
            tenant.world.launch_operator_through(&proxy, "").await?.wait_ready().await?;
            // On the heap: the future of a long test is large.
            Box::pin(body(tenant, &proxy)).await?;
            // While it can still reach the API server.
            tenant.world.stop_operator().await
        })
        .await
    }

    fn worlds(&self) -> MutexGuard<'_, Vec<World>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sees that `check` holds all through `window`; fails at the first poll at which it does not.
///
/// The name is that of Gomega's `Consistently`.
///
/// That something does not happen has no event to wait for. This is the one way in which tests let
/// time pass, and it is for nothing else.
///
/// # Errors
///
/// The check failed.
pub async fn consistently(
    what: &str,
    window: Duration,
    check: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    let (begin, end) = (Instant::now(), Instant::now() + window);
    loop {
        let look = check().await;
        look.with_context(|| format!("{what}: not so after {:?}", begin.elapsed()))?;
        if Instant::now() >= end {
            return Ok(());
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The runtimes that the constants of this module name.
fn runtimes() -> Vec<Value> {
    let delay = "pod-complete.stage.kwok.x-k8s.io/delay";
    vec![
        runtime(RUNS, &json!({}), 3, None),
        runtime(COMPLETES, &json!({delay: "1s"}), 3, None),
        mpi(),
        runtime(VANISHES, &json!({delay: "1s"}), 3, Some(1)),
        runtime(FAILS, &json!({delay: "1s", "e2e.trainjob.dev/outcome": "fail"}), 3, None),
        runtime(STUBBORN, &json!({"e2e.trainjob.dev/sigterm": "ignore"}), STUBBORN_SECONDS, None),
    ]
}

/// A ClusterTrainingRuntime of MPI, whose launcher and one node complete after a second.
#[must_use]
pub fn mpi() -> Value {
    let replicated_job = |name: &str| {
        let delay = json!({"pod-complete.stage.kwok.x-k8s.io/delay": "1s"});
        let pod = json!({
            "metadata": {"annotations": delay},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "node", "image": "example.com/train:1"}],
            },
        });
        json!({"name": name, "template": {"spec": {"backoffLimit": 0, "template": pod}}})
    };
    let jobs = json!([replicated_job("node"), replicated_job("launcher")]);
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": MPI},
        "spec": {"mlPolicy": {"mpi": {}}, "template": {"spec": {"replicatedJobs": jobs}}},
    })
}

/// A ClusterTrainingRuntime of one Pod, with what these `annotations` make a fake Pod do.
#[must_use]
pub fn runtime(name: &str, annotations: &Value, grace: i64, jobset_ttl: Option<i64>) -> Value {
    let pod = json!({
        "metadata": {"annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "node", "image": "example.com/train:1"}],
        },
    });
    let job = json!({
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"backoffLimit": 0, "template": pod},
    });
    let jobs = json!([{"name": "node", "template": job}]);
    let job_set = match jobset_ttl {
        Some(seconds) => json!({"ttlSecondsAfterFinished": seconds, "replicatedJobs": jobs}),
        None => json!({"replicatedJobs": jobs}),
    };
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": job_set}},
    })
}

/// A TrainJob on a ClusterTrainingRuntime, with `more` in its spec.
#[must_use]
pub fn train_job(name: &str, runtime: &str, more: &Value) -> Value {
    let mut spec = json!({"runtimeRef": {"name": runtime}});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": spec,
    })
}
