//! What a program shows at `/metrics`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::product::Product;

/// One program's metrics at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exposition {
    /// Type and help, by metric.
    pub(crate) families: BTreeMap<String, (String, String)>,
    /// Values by series, as they are written.
    pub(crate) samples: BTreeMap<String, String>,
}

impl Exposition {
    /// What this program shows now.
    pub(crate) async fn of(program: &Product) -> Result<Self> {
        Self::read(&program.metrics_page().await?)
    }

    fn read(text: &str) -> Result<Self> {
        let mut read = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').context("no help")?;
                let family = read.families.entry(name.to_owned()).or_default();
                help.clone_into(&mut family.1);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').context("no type")?;
                let family = read.families.entry(name.to_owned()).or_default();
                kind.clone_into(&mut family.0);
            } else if !line.is_empty() {
                let (series, value) = line.rsplit_once(' ').context("no value")?;
                let twice = read.samples.insert(series.to_owned(), value.to_owned());
                ensure!(twice.is_none(), "{series} is there twice");
            }
        }
        Ok(read)
    }

    /// The value of a series that counts.
    pub(crate) fn count(&self, series: &str) -> Result<usize> {
        let value = self.samples.get(series).with_context(|| format!("there is no {series}"))?;
        value.parse().with_context(|| format!("{series} is {value}"))
    }

    /// Every label of a metric with the values that it has.
    pub(crate) fn labels(&self, metric: &str) -> BTreeMap<String, BTreeSet<String>> {
        let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let is_histogram = self.families.get(metric).is_some_and(|(kind, _)| kind == "histogram");
        for series in self.samples.keys() {
            let (name, pairs) = series.split_once('{').unwrap_or((series, ""));
            let of_histogram = is_histogram
                && ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|part| name.strip_suffix(part) == Some(metric));
            if name != metric && !of_histogram {
                continue;
            }
            let pairs = pairs.trim_end_matches('}').split("\",");
            for (label, value) in pairs.filter_map(|pair| pair.split_once("=\"")) {
                if !(is_histogram && label == "le") {
                    let value = value.trim_end_matches('"').to_owned();
                    labels.entry(label.to_owned()).or_default().insert(value);
                }
            }
        }
        labels
    }
}
