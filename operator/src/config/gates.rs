//! Feature gates: one feature, which this release does not have, and the two groups of Kubernetes.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, de::IntoDeserializer};

use super::error::Problem;

/// What can be switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Gate {
    /// The server that Pods report their progress to; alpha, off. Not part of this release.
    TrainJobStatus,
    /// Every alpha feature that is not named itself; off.
    AllAlpha,
    /// Every beta feature that is not named itself; off. There is none.
    AllBeta,
}

/// The value of `--feature-gates`: `gate=true,gate=false`. Of two values of a gate the last counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gates(pub BTreeMap<Gate, bool>);

impl FromStr for Gates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut gates = BTreeMap::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) = item
                .split_once('=')
                .ok_or_else(|| format!("no value for `{item}`, expected {item}=true or false"))?;
            gates.insert(gate(name.trim())?, boolean(value.trim())?);
        }
        Ok(Self(gates))
    }
}

fn gate(name: &str) -> Result<Gate, String> {
    Gate::deserialize(name.into_deserializer()).map_err(|error: serde::de::value::Error| {
        error.to_string().replacen("unknown variant", "unknown feature gate", 1)
    })
}

/// A boolean as Go's flags take it.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("unknown value {text:?}, expected true or false")),
    }
}

/// Where a gate got its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    File,
    Flag,
}

/// Refuses gates that switch on what this release does not have. The flag is applied after the file.
pub(super) fn check(
    file: &BTreeMap<Gate, bool>,
    flag: &BTreeMap<Gate, bool>,
) -> Result<(), (Origin, Problem)> {
    let value = |gate| {
        let of = |gates: &BTreeMap<Gate, bool>, origin| gates.get(&gate).map(|on| (*on, origin));
        of(flag, Origin::Flag).or_else(|| of(file, Origin::File)).map(|(on, o)| (gate, on, o))
    };
    let Some((gate, true, origin)) =
        value(Gate::TrainJobStatus).or_else(|| value(Gate::AllAlpha))
    else {
        return Ok(());
    };
    let field = match origin {
        Origin::File => format!("featureGates.{gate:?}"),
        Origin::Flag => format!("{gate:?}"),
    };
    Err((origin, Problem::new(field, "the status server is not part of this release, expected false")))
}
