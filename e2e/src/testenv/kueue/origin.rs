//! The chart's policy about the label of a copy that MultiKueue has made.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::testenv::apply::apply;
use crate::testenv::chart::{CHART, file_of_chart};
use crate::testenv::cluster::Cluster;
use crate::testenv::{workspace, yaml};

/// Lets nobody but those whom the chart's values name by default, and these `users`, set the label. Helm renders the same
/// in `cargo acceptance`.
pub async fn protect_origin(cluster: &Cluster, users: &[&str]) -> Result<()> {
    let values = yaml::documents(&workspace::read(&format!("{CHART}/values.yaml"))?)?;
    let default = values.first().and_then(|values| values.get("multiKueueOrigin"));
    let of = |who: &str| {
        let names = default.and_then(|default| default.get(who)).and_then(Value::as_array);
        names.cloned().with_context(|| format!("multiKueueOrigin.{who} is no list"))
    };
    let all = of("users")?.into_iter().chain(users.iter().map(|user| json!(user)));
    let variable =
        |name: &str, value: Value| json!({"name": name, "expression": value.to_string()});
    let variables = [variable("users", all.collect()), variable("groups", of("groups")?.into())];
    let mut objects = file_of_chart("multikueue-origin.yaml")?;
    let policy = objects.first_mut().context("there is no policy")?;
    let none = policy.pointer_mut("/spec/variables").context("the policy has no variables")?;
    *none = json!(variables);
    apply(&cluster.client().await?, "default", objects).await?;
    Ok(())
}
