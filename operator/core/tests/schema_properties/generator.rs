//! Makes objects that a schema admits: any of its fields, with any values it allows.
//!
//! What TrainJobs are made of is there more often than the hundreds of fields of Pods that are only
//! copied, and names are often those that mean something: otherwise hardly anything would ever be built.
//! Rules in CEL are not looked at, so more is made than the API server would store.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use proptest::{
    prelude::RngExt as _,
    test_runner::{RngAlgorithm, TestRng},
};
use serde_json::{Map, Value, json};

/// Fields that decide what is built.
const DECISIVE: &[&str] = &[
    "args",
    "command",
    "containers",
    "coscheduling",
    "env",
    "initContainers",
    "initializer",
    "labels",
    "metadata",
    "mlPolicy",
    "mpi",
    "numNodes",
    "numProcPerNode",
    "parallelism",
    "replicas",
    "replicatedJobs",
    "resources",
    "resourcesPerNode",
    "runtimePatches",
    "runtimeRef",
    "spec",
    "template",
    "torch",
    "trainer",
    "trainingRuntimeSpec",
    "volcano",
];
/// Names that something is looked for by.
const NAMES: &[&str] = &[
    "node",
    "trainer",
    "launcher",
    "dataset-initializer",
    "model-initializer",
    "flux-installer",
    "PET_NNODES",
    "MASTER_ADDR",
    "FLUX_VIEW_IMAGE",
    "OMPI_MCA_orte_default_hostfile",
    "config.json",
    "tj",
    "a",
];
const LABELS: &[&str] =
    &["trainer.kubeflow.org/trainjob-ancestor-step", "app", "kueue.x-k8s.io/queue-name"];
const RESOURCES: &[&str] =
    &["cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "intel.com/xpu", "example.com/dongle"];
const QUANTITIES: &[&str] = &[
    "0",
    "1",
    "2",
    "1500m",
    "0.5",
    "4Gi",
    "1e3",
    "100k",
    "-1",
    "9223372036854775807",
    "1E",
    "1n",
    "+3",
];
const COMMANDS: &[&str] = &["tune", "run", "torchrun", "mpirun", "sh", "-c", "--nnodes=2", ""];
/// Deeper than any field that decides anything.
const DEEP: usize = 24;

/// A source of objects.
pub(crate) struct Generator {
    rng: TestRng,
    /// How many of a hundred fields that decide nothing are there.
    richness: u32,
}

impl Generator {
    /// The same arguments make the same objects.
    pub(crate) fn new(seed: u64, richness: u32) -> Self {
        let mut bytes = [1; 16];
        for (to, from) in bytes.iter_mut().zip(seed.to_le_bytes()) {
            *to = from;
        }
        Self { rng: TestRng::from_seed(RngAlgorithm::XorShift, &bytes), richness }
    }

    /// Anything that `schema` admits for the field `name`.
    pub(crate) fn field(&mut self, name: &str, schema: &JSONSchemaProps) -> Value {
        self.value(name, schema, 0)
    }

    /// One of `choices`.
    pub(crate) fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let index = self.rng.random_range(0..choices.len());
        choices[index]
    }

    fn percent(&mut self, share: u32) -> bool {
        self.rng.random_range(0..100) < share
    }

    fn value(&mut self, name: &str, schema: &JSONSchemaProps, depth: usize) -> Value {
        if let Some(values) = &schema.enum_ {
            let index = self.rng.random_range(0..values.len());
            return values[index].0.clone();
        }
        if schema.x_kubernetes_int_or_string == Some(true) {
            return self.int_or_string();
        }
        match schema.type_.as_deref() {
            Some("object") => self.object(name, schema, depth),
            Some("array") => self.array(name, schema, depth),
            Some("integer") => self.integer(schema),
            Some("number") => json!(self.rng.random_range(-2.0..2.0)),
            Some("boolean") => json!(self.percent(50)),
            Some("string") => json!(self.text(name, schema)),
            other => panic!("{name} has a type that is not expected in a CRD: {other:?}"),
        }
    }

    fn object(&mut self, name: &str, schema: &JSONSchemaProps, depth: usize) -> Value {
        let mut object = Map::new();
        if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
            for _ in 0..self.length(schema.min_properties, Some(2)) {
                let key = if values.x_kubernetes_int_or_string == Some(true) {
                    self.one_of(RESOURCES).to_owned()
                } else {
                    self.one_of(LABELS).to_owned()
                };
                object.insert(key, self.value("value", values, depth + 1));
            }
        }
        let required = schema.required.clone().unwrap_or_default();
        for (field, of_field) in schema.properties.iter().flatten() {
            let decisive = DECISIVE.contains(&field.as_str());
            let share = if depth > DEEP {
                0
            } else if decisive {
                75
            } else {
                self.richness
            };
            if required.contains(field) || self.percent(share) {
                object.insert(field.clone(), self.value(field, of_field, depth + 1));
            }
        }
        if name == "metadata" && schema.properties.is_none() {
            object.insert("labels".to_owned(), json!({LABELS[0]: self.one_of(NAMES)}));
        }
        Value::Object(object)
    }

    fn array(&mut self, name: &str, schema: &JSONSchemaProps, depth: usize) -> Value {
        let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else {
            panic!("{name} is an array of no type");
        };
        let mut array: Vec<Value> = Vec::new();
        for _ in
            0..self.length(schema.min_items, schema.max_items.or(Some(2)).map(|most| most.min(2)))
        {
            let item = self.value(name, items, depth + 1);
            // The keys of a list that is a map are its identity, and stored once each.
            let keys = schema.x_kubernetes_list_map_keys.as_deref().unwrap_or_default();
            let same = |other: &Value| keys.iter().all(|key| other.get(key) == item.get(key));
            if keys.is_empty() || !array.iter().any(same) {
                array.push(item);
            }
        }
        Value::Array(array)
    }

    fn length(&mut self, least: Option<i64>, most: Option<i64>) -> i64 {
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(4));
        self.rng.random_range(least..=most.max(least))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounds of the schema are small whole numbers"
    )]
    fn integer(&mut self, schema: &JSONSchemaProps) -> Value {
        let long = schema.format.as_deref() == Some("int64");
        let (low, high) =
            if long { (i64::MIN, i64::MAX) } else { (i32::MIN.into(), i32::MAX.into()) };
        let least = schema.minimum.map_or(low, |least| least as i64);
        let most = schema.maximum.map_or(high, |most| most as i64);
        let number = match self.rng.random_range(0..10) {
            0 => self.rng.random_range(least..=most),
            1 => least,
            2 => most,
            _ => self.rng.random_range(0..5).clamp(least, most),
        };
        json!(number)
    }

    fn int_or_string(&mut self) -> Value {
        match self.rng.random_range(0..4) {
            0 => json!(self.rng.random_range(-1..9)),
            _ => json!(self.one_of(QUANTITIES)),
        }
    }

    fn text(&mut self, name: &str, schema: &JSONSchemaProps) -> String {
        let text = match (name, schema.format.as_deref()) {
            (_, Some("date-time")) => "2026-11-21T10:00:00Z".to_owned(),
            ("name" | "value" | "containerName" | "podSet", _) if self.percent(80) => {
                self.one_of(NAMES).to_owned()
            }
            ("command" | "args", _) if self.percent(80) => self.one_of(COMMANDS).to_owned(),
            ("kind", _) if self.percent(80) => {
                self.one_of(&["ClusterTrainingRuntime", "TrainingRuntime"]).to_owned()
            }
            ("mpiImplementation", _) => self.one_of(&["OpenMPI", "Intel", "MPICH", ""]).to_owned(),
            _ => {
                let length = self.rng.random_range(0..9);
                (0..length).map(|_| self.letter()).collect()
            }
        };
        let least = usize::try_from(schema.min_length.unwrap_or(0)).unwrap();
        if text.chars().count() < least { "x".repeat(least) } else { text }
    }

    fn letter(&mut self) -> char {
        match self.rng.random_range(0..12) {
            0 => self.rng.random(),
            1 => char::from(self.rng.random_range(b' '..=b'~')),
            _ => char::from(self.rng.random_range(b'a'..=b'z')),
        }
    }
}
