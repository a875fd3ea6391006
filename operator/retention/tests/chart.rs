//! The section `retention` of the chart's values says what the program's configuration says.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeSet;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};
use trainjob_retention::config::file::{Retention, Target};

/// What only the chart knows of a target: the rights about its owners.
const OF_THE_CHART: &str = "owners";

fn fields_of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    schema.as_value()["properties"].as_object().unwrap().clone()
}

fn of_the_chart(file: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/trainjob-operator");
    let text = std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn the_values_of_the_chart_are_the_defaults_of_the_program() {
    let values = of_the_chart("values.yaml");
    for (name, field) in fields_of::<Retention>() {
        let (value, default) = (&values["retention"][&name], &field["default"]);
        let same = match (value.as_f64(), default.as_f64()) {
            (Some(value), Some(default)) => value.total_cmp(&default).is_eq(),
            _ => value == default,
        };
        assert!(same, "retention.{name}: {value}, {default}");
    }
}

#[test]
fn the_schema_of_the_values_has_the_bounds_of_the_program() {
    let schema = of_the_chart("values.schema.json");
    let chart = &schema["properties"]["retention"]["properties"];
    for (name, field) in fields_of::<Retention>() {
        for bound in ["minimum", "maximum"] {
            let (chart, program) = (&chart[&name][bound], &field[bound]);
            assert_eq!(chart.as_f64(), program.as_f64(), "retention.{name}: {bound}");
        }
    }
}

#[test]
fn a_target_of_the_chart_has_the_fields_that_the_program_reads_and_the_owners() {
    let schema = of_the_chart("values.schema.json");
    let chart = &schema["properties"]["retention"]["properties"]["targets"]["items"]["properties"];
    let chart: BTreeSet<_> = chart.as_object().unwrap().keys().cloned().collect();
    let mut expected: BTreeSet<_> = fields_of::<Target>().keys().cloned().collect();
    expected.insert(OF_THE_CHART.to_owned());
    assert_eq!(chart, expected);
}
