//! Feature gates: one feature, which this release does not have, and the two groups of Kubernetes.

use std::{borrow::Cow, collections::BTreeMap, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What can be switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub enum Gate {
    /// The server that Pods report their progress to; alpha, off. Not part of this release.
    TrainJobStatus,
    /// Every alpha feature that is not named itself; off.
    AllAlpha,
    /// Every beta feature that is not named itself; off. There is none.
    AllBeta,
}

impl JsonSchema for Gate {
    fn schema_name() -> Cow<'static, str> {
        "Gate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^(TrainJobStatus|AllAlpha|AllBeta)$"})
    }
}

impl TryFrom<String> for Gate {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        match name.as_str() {
            "TrainJobStatus" => Ok(Self::TrainJobStatus),
            "AllAlpha" => Ok(Self::AllAlpha),
            "AllBeta" => Ok(Self::AllBeta),
            _ => Err(format!(
                "unknown feature gate `{name}`, expected one of `TrainJobStatus`, `AllAlpha`, `AllBeta`"
            )),
        }
    }
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
            gates.insert(name.trim().to_owned().try_into()?, boolean(value.trim())?);
        }
        Ok(Self(gates))
    }
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

/// The gate that switches on what this release does not have, if one does.
///
/// The flag is applied after the file, and a feature's own gate before that of its group.
pub(super) fn unavailable(
    file: &BTreeMap<Gate, bool>,
    flag: &BTreeMap<Gate, bool>,
) -> Option<(Gate, Origin)> {
    [Gate::TrainJobStatus, Gate::AllAlpha]
        .into_iter()
        .flat_map(|gate| [(gate, Origin::Flag, flag), (gate, Origin::File, file)])
        .find_map(|(gate, origin, gates)| Some((*gates.get(&gate)?, gate, origin)))
        .and_then(|(on, gate, origin)| on.then_some((gate, origin)))
}
