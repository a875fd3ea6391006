//! Sums of quantities, and of what Pods request.
//!
//! An amount is a whole number of billionths, the finest that Kubernetes keeps, so sums are exact. It is
//! written as Kubernetes writes it: with the largest suffix that leaves a whole number.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    api::core::v1::{Container, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};

use super::{error::BuildError, quantity::parts};

/// Digits behind the point that an amount has.
const DIGITS: u32 = 9;

/// How much of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    billionths: u128,
    /// Whether it is written in powers of 1,024.
    binary: bool,
}

/// How much of each resource, by its name.
pub(crate) type Amounts = BTreeMap<String, Amount>;

impl Amount {
    fn parse(resource: &str, Quantity(value): &Quantity) -> Result<Self, BuildError> {
        let billionths = parts(value, DIGITS.into()).ok_or_else(|| BuildError::Quantity {
            resource: resource.into(),
            value: value.clone(),
        })?;
        Ok(Self { billionths, binary: value.ends_with('i') })
    }

    const fn plus(self, other: Self) -> Self {
        let binary = if self.billionths == 0 { other.binary } else { self.binary };
        Self { billionths: self.billionths.saturating_add(other.billionths), binary }
    }

    fn or_more(self, other: Self) -> Self {
        if other.billionths > self.billionths { other } else { self }
    }

    /// So many billionths.
    pub(crate) const fn billionths(self) -> u128 {
        self.billionths
    }

    /// So many times this.
    pub(crate) const fn times(self, count: u128) -> Self {
        Self { billionths: self.billionths.saturating_mul(count), ..self }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { billionths, binary } = *self;
        if billionths == 0 {
            return f.write_str("0");
        }
        let unit = 10_u128.pow(DIGITS);
        if binary && billionths.is_multiple_of(unit) {
            return scaled(f, billionths / unit, 1_024, &BINARY);
        }
        scaled(f, billionths, 1_000, &DECIMAL)
    }
}

/// Writes a number with the last of the suffixes, each `step` times the one before, that leaves it whole.
fn scaled(
    f: &mut fmt::Formatter<'_>,
    mut number: u128,
    step: u128,
    suffixes: &[&str],
) -> fmt::Result {
    let mut suffixes = suffixes.iter();
    while suffixes.len() > 1 && number.is_multiple_of(step) {
        suffixes.next();
        number /= step;
    }
    write!(f, "{number}{}", suffixes.next().unwrap_or(&""))
}
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// What the API server and the scheduler take a Pod to request.
///
/// Its containers together, or, where that is more, one of its init containers and the sidecars started
/// before it; and the overhead of its runtime class. What is requested for the Pod as a whole goes before
/// the sum. A limit without a request is a request: the API server makes it one.
///
/// # Errors
///
/// A quantity is none.
pub(crate) fn requests(pod: &PodSpec) -> Result<Amounts, BuildError> {
    let mut running = Amounts::new();
    for container in &pod.containers {
        add(&mut running, &of_container(container)?);
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in pod.init_containers.iter().flatten() {
        let own = of_container(container)?;
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &own);
        } else {
            // Of what it does not ask for, no more runs meanwhile than the sidecars take in the end.
            let meanwhile = own.into_iter().map(|(name, own)| {
                let amount = sidecars.get(&name).map_or(own, |of_sidecars| of_sidecars.plus(own));
                (name, amount)
            });
            at_least(&mut starting, &meanwhile.collect());
        }
    }
    add(&mut running, &sidecars);
    at_least(&mut running, &starting);
    running.extend(pod.resources.as_ref().map(of_resources).transpose()?.unwrap_or_default());
    add(&mut running, &parsed(pod.overhead.iter().flatten())?);
    Ok(running)
}

fn of_container(container: &Container) -> Result<Amounts, BuildError> {
    container.resources.as_ref().map_or_else(|| Ok(Amounts::new()), of_resources)
}

fn of_resources(resources: &ResourceRequirements) -> Result<Amounts, BuildError> {
    let mut amounts = parsed(resources.limits.iter().flatten())?;
    amounts.extend(parsed(resources.requests.iter().flatten())?);
    Ok(amounts)
}

fn parsed<'a>(
    quantities: impl Iterator<Item = (&'a String, &'a Quantity)>,
) -> Result<Amounts, BuildError> {
    quantities.map(|(name, value)| Ok((name.clone(), Amount::parse(name, value)?))).collect()
}

/// Adds up, resource by resource.
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    merge(sum, more, Amount::plus);
}

fn at_least(amounts: &mut Amounts, floor: &Amounts) {
    merge(amounts, floor, Amount::or_more);
}

fn merge(amounts: &mut Amounts, others: &Amounts, join: fn(Amount, Amount) -> Amount) {
    for (name, other) in others {
        let joined = amounts.get(name).map_or(*other, |known| join(*known, *other));
        amounts.insert(name.clone(), joined);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(value: &str) -> String {
        Amount::parse("r", &Quantity(value.into())).unwrap().to_string()
    }

    #[test]
    fn an_amount_is_written_as_kubernetes_writes_it() {
        for (value, expected) in [
            ("0", "0"),
            ("1", "1"),
            ("1000m", "1"),
            ("2500m", "2500m"),
            ("0.5", "500m"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("4Gi", "4Gi"),
            ("4096Mi", "4Gi"),
            ("1536Mi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("1023", "1023"),
            ("1u", "1u"),
            ("1n", "1n"),
            ("7E", "7E"),
            ("-1", "0"),
        ] {
            assert_eq!(written(value), expected, "{value}");
        }
    }

    fn sum(pod: &Value) -> Value {
        let amounts = requests(&serde_json::from_value(pod.clone()).unwrap()).unwrap();
        amounts.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect()
    }

    fn container(resources: &Value) -> Value {
        json!({"name": "c", "resources": resources})
    }

    #[test]
    fn a_pod_requests_what_its_containers_do_together_or_the_most_that_starting_takes() {
        let cpu = |value: &str| container(&json!({"requests": {"cpu": value}}));
        let sidecar = |value: &str| {
            let mut sidecar = cpu(value);
            sidecar["restartPolicy"] = json!("Always");
            sidecar
        };
        for (what, pod, expected) in [
            ("nothing", json!({"containers": [container(&json!({}))]}), json!({})),
            ("a sum", json!({"containers": [cpu("1"), cpu("500m")]}), json!({"cpu": "1500m"})),
            (
                "a limit is a request, unless there is one",
                json!({"containers": [container(&json!({
                    "limits": {"nvidia.com/gpu": "2", "cpu": "4"}, "requests": {"cpu": "1"},
                }))]}),
                json!({"nvidia.com/gpu": "2", "cpu": "1"}),
            ),
            (
                "starting takes more",
                json!({"containers": [cpu("1")], "initContainers": [cpu("3"), cpu("2")]}),
                json!({"cpu": "3"}),
            ),
            (
                "sidecars stay",
                json!({"containers": [cpu("1")], "initContainers": [sidecar("1"), cpu("3")]}),
                json!({"cpu": "4"}),
            ),
            (
                "overhead",
                json!({"containers": [cpu("1")], "overhead": {"cpu": "250m", "memory": "1Mi"}}),
                json!({"cpu": "1250m", "memory": "1Mi"}),
            ),
            (
                "the Pod as a whole",
                json!({"containers": [cpu("1")], "resources": {"requests": {"cpu": "2"}}}),
                json!({"cpu": "2"}),
            ),
        ] {
            assert_eq!(sum(&pod), expected, "{what}");
        }
    }

    #[test]
    fn a_quantity_that_is_none_is_an_error() {
        let pod = json!({"containers": [container(&json!({"limits": {"cpu": "many"}}))]});
        let error = requests(&serde_json::from_value(pod).unwrap()).unwrap_err();
        assert!(error.to_string().contains("\"many\" is not a quantity of cpu"), "{error}");
    }
}
