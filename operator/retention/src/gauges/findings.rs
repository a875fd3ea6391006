//! Finished objects and policies.

use std::sync::Arc;

use prometheus::{IntGauge, IntGaugeVec, Opts, Result};
use trainjob_process::metrics::{Sampled, Values};
use trainjob_retention_core::{plan::State, policy::Mode};

use crate::{cluster_state::Numbers, metrics::PREFIX};

/// What is said of the objects of a kind.
pub(super) struct KindLine {
    pub(super) kind: String,
    pub(super) numbers: Numbers,
}

/// What is said of a policy.
#[derive(Debug, Clone)]
pub(super) struct PolicyLine {
    pub(super) policy: Arc<str>,
    /// The kind that it deletes; `None`: it is not understood, or its kind is none of the configuration.
    pub(super) kind: Option<String>,
    /// `None`: it is not understood.
    pub(super) mode: Option<Mode>,
    pub(super) is_ready: bool,
    pub(super) is_forbidden: bool,
    pub(super) is_tripped: bool,
    pub(super) unexpected: u64,
    pub(super) would_delete: u64,
}

/// What is said of each policy: the name of the gauge, its help text, and its value.
type OfPolicy = (&'static str, &'static str, fn(&PolicyLine) -> u64);

/// The gauges by policy.
const BY_POLICY: [OfPolicy; 4] = [
    ("would_delete", "Objects that are due by this policy, in Audit, too.", |it| it.would_delete),
    ("unexpected", "Objects that an edit has made due and that wait.", |it| it.unexpected),
    ("tripped", "Policies of this name that wait for an acknowledgement.", |it| {
        u64::from(it.is_tripped)
    }),
    (
        "forbidden",
        "Policies of this name that are about a kind that the configuration does not name.",
        |it| u64::from(it.is_forbidden),
    ),
];

/// The gauges about what was found.
pub(super) struct Findings {
    objects: IntGaugeVec,
    due_longest: IntGaugeVec,
    held_longest: IntGauge,
    stuck: IntGaugeVec,
    loops: IntGauge,
    policies: IntGaugeVec,
    /// In the order of [`BY_POLICY`].
    by_policy: Vec<IntGaugeVec>,
}

impl Findings {
    pub(super) fn new(metrics: &mut Sampled) -> Result<Self> {
        let by_policy =
            BY_POLICY.iter().map(|&(name, help, _)| vector(metrics, (name, help), &["policy"]));
        let by_policy = by_policy.collect::<Result<Vec<_>>>()?;
        Ok(Self {
            objects: vector(
                metrics,
                ("objects", "Finished objects that policies in Enforce govern, by kind and state."),
                &["kind", "state"],
            )?,
            due_longest: vector(
                metrics,
                (
                    "due_longest_seconds",
                    "For how long the object has been due that has been due longest, by kind; 0 if none is.",
                ),
                &["kind"],
            )?,
            held_longest: metrics.gauge(
                &format!("{PREFIX}_held_longest_seconds"),
                "For how long the object has been held beyond its time that has been held longest; 0 if none is.",
            )?,
            stuck: vector(
                metrics,
                ("stuck_terminating", "Objects that have been terminating for over 10 minutes, by kind."),
                &["kind"],
            )?,
            loops: metrics.gauge(
                &format!("{PREFIX}_loops"),
                "Names that policies delete and somebody makes again, three times within an hour.",
            )?,
            policies: vector(
                metrics,
                ("policies", "Policies, by mode and by whether they are ready."),
                &["mode", "ready"],
            )?,
            by_policy,
        })
    }

    /// Sets what is said of objects. Kinds that are shown by one name are added up.
    pub(super) fn set_kinds(&self, kinds: &[KindLine], shown: &Values) {
        self.objects.reset();
        self.due_longest.reset();
        self.stuck.reset();
        for KindLine { kind, numbers } in kinds {
            let kind = shown.shown(kind);
            for state in State::ALL {
                let objects = numbers.states.get(&state).copied().unwrap_or(0);
                add(&self.objects.with_label_values(&[&*kind, state_name(state)]), objects);
            }
            add(&self.stuck.with_label_values(&[&*kind]), numbers.stuck);
            let longest = self.due_longest.with_label_values(&[&*kind]);
            longest.set(longest.get().max(numbers.due_longest));
        }
        let longest = kinds.iter().map(|line| line.numbers.held_longest).max();
        self.held_longest.set(longest.unwrap_or(0));
    }

    /// Sets how many names loop.
    pub(super) fn set_loops(&self, loops: usize) {
        self.loops.set(loops.try_into().unwrap_or(i64::MAX));
    }

    /// Sets what is said of policies. Those that are shown by one name are added up.
    pub(super) fn set_policies(&self, policies: &[PolicyLine], shown: &Values) {
        for mode in [Some(Mode::Audit), Some(Mode::Enforce), None] {
            for is_ready in [false, true] {
                let alike = |line: &&PolicyLine| line.mode == mode && line.is_ready == is_ready;
                let count = policies.iter().filter(alike).count();
                let ready = if is_ready { "true" } else { "false" };
                let gauge = self.policies.with_label_values(&[mode_name(mode), ready]);
                gauge.set(count.try_into().unwrap_or(i64::MAX));
            }
        }
        for (gauge, (_, _, value)) in self.by_policy.iter().zip(BY_POLICY) {
            gauge.reset();
            for line in policies {
                let policy = shown.shown(&line.policy);
                add(&gauge.with_label_values(&[&*policy]), value(line));
            }
        }
    }
}

fn vector(
    metrics: &mut Sampled,
    (name, help): (&str, &str),
    labels: &[&str],
) -> Result<IntGaugeVec> {
    let gauges = IntGaugeVec::new(Opts::new(format!("{PREFIX}_{name}"), help), labels)?;
    metrics.add(gauges.clone());
    Ok(gauges)
}

fn add(gauge: &IntGauge, number: u64) {
    gauge.add(number.try_into().unwrap_or(i64::MAX));
}

const fn mode_name(mode: Option<Mode>) -> &'static str {
    match mode {
        Some(Mode::Audit) => "audit",
        Some(Mode::Enforce) => "enforce",
        None => "not_understood",
    }
}

const fn state_name(state: State) -> &'static str {
    match state {
        State::Pending => "pending",
        State::Due => "due",
        State::Kept => "kept",
        State::Held => "held",
        State::Owned => "owned",
        State::Guarded => "guarded",
        State::NeedsOwner => "needs_owner",
        State::Ungrouped => "ungrouped",
        State::NoFinishTime => "no_finish_time",
        State::Terminating => "terminating",
        State::NativeTtl => "native_ttl",
    }
}
