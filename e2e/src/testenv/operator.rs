//! The operator under test: the real binary, with the permissions the chart gives it.

use std::ops::Deref;
use std::path::Path;

use anyhow::Result;
use invariants::RbacRule;

use crate::testenv::cluster::Cluster;
use crate::testenv::product::{Product, Rules};
use crate::testenv::workspace;

pub use crate::testenv::product::Options as OperatorOptions;

/// The `ServiceAccount` the operator runs as, as the chart calls it.
pub const SERVICE_ACCOUNT: &str = "trainjob-operator";

pub(crate) const RULES: Rules =
    Rules { cluster: "operator-cluster-rules.yaml", namespace: "operator-namespace-rules.yaml" };

/// A running operator. Dropped, it is asked to stop, and killed if it does not.
#[derive(Debug)]
pub struct Operator(Product);

impl Operator {
    /// Starts an operator; whether it is ready is another question: [`Product::wait_ready`].
    pub async fn start(cluster: &Cluster, options: OperatorOptions) -> Result<Self> {
        let binary = tokio::task::spawn_blocking(workspace::operator).await??;
        Self::start_file(cluster, &binary, options)
    }

    /// The same with the file of another version of it.
    pub(crate) fn start_file(
        cluster: &Cluster,
        file: &Path,
        options: OperatorOptions,
    ) -> Result<Self> {
        Ok(Self(Product::start(cluster, "operator", file, options)?))
    }
}

impl Deref for Operator {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.0
    }
}

/// Creates `namespace` with the operator's `ServiceAccount` and the permissions the chart gives it.
/// [`Cluster::service_account_kubeconfig`] then gives its kubeconfig.
pub async fn install_operator_rbac(cluster: &Cluster, namespace: &str) -> Result<()> {
    RULES.install(cluster, namespace, SERVICE_ACCOUNT).await
}

/// What the chart lets the operator ask for, in the whole cluster and in its own namespace.
pub fn rbac_rules() -> Result<Vec<RbacRule>> {
    RULES.rbac_rules()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_permits_deleting_trainjobs_and_not_reading_secrets() {
        let rules = rbac_rules().unwrap();
        let gives = |resource: &str, verb: &str| {
            let names = |list: &[String], name: &str| list.iter().any(|it| it == name || it == "*");
            rules.iter().any(|it| names(&it.resources, resource) && names(&it.verbs, verb))
        };
        assert!(gives("trainjobs", "delete"));
        assert!(!["get", "list", "watch"].iter().any(|verb| gives("secrets", verb)));
    }
}
