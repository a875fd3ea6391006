//! All suites that share a process, and so the boxes that fit several of them; side by side they leave no core idle.
//!
//! Each is a test target of its own, too, for whoever works on it: `cargo test --workspace --test frozen`. Not among them
//! are `node`, whose processes have time limits, and `bench` and `faults`, which are short runs of what has commands of its
//! own.

#[path = "accounting.rs"]
mod accounting;
#[path = "accounting_program/main.rs"]
mod accounting_program;
#[path = "accounting_traps/main.rs"]
mod accounting_traps;
#[path = "admission/main.rs"]
mod admission;
#[path = "certificates.rs"]
mod certificates;
#[path = "chart.rs"]
mod chart;
#[path = "clocks/main.rs"]
mod clocks;
#[path = "counts.rs"]
mod counts;
#[path = "crashes.rs"]
mod crashes;
#[path = "dead_connections.rs"]
mod dead_connections;
#[path = "degraded.rs"]
mod degraded;
#[path = "evicted.rs"]
mod evicted;
#[path = "first_minute.rs"]
mod first_minute;
#[path = "frozen.rs"]
mod frozen;
#[path = "gang_scheduler.rs"]
mod gang_scheduler;
#[path = "gangs.rs"]
mod gangs;
#[path = "help.rs"]
mod help;
#[path = "image.rs"]
mod image;
#[path = "imports.rs"]
mod imports;
#[path = "box.rs"]
mod in_a_box;
#[path = "isolation.rs"]
mod isolation;
#[path = "kubectl_plugin/main.rs"]
mod kubectl_plugin;
#[path = "kueue/main.rs"]
mod kueue;
#[path = "leadership/main.rs"]
mod leadership;
#[path = "lifecycle/main.rs"]
mod lifecycle;
#[path = "links.rs"]
mod links;
#[path = "metrics/main.rs"]
mod metrics;
#[path = "module_cycles.rs"]
mod module_cycles;
#[path = "observability/main.rs"]
mod observability;
#[path = "proxy/main.rs"]
mod proxy;
#[path = "races.rs"]
mod races;
#[path = "rbac/main.rs"]
mod rbac;
#[path = "resilience/main.rs"]
mod resilience;
#[path = "retention_engine/main.rs"]
mod retention_engine;
#[path = "retention_kinds/main.rs"]
mod retention_kinds;
#[path = "retention_policies/main.rs"]
mod retention_policies;
#[path = "retention_traps/main.rs"]
mod retention_traps;
#[path = "runtimes.rs"]
mod runtimes;
#[path = "second_controller/main.rs"]
mod second_controller;
#[path = "security_claims/main.rs"]
mod security_claims;
#[path = "suspension.rs"]
mod suspension;
#[path = "take_over.rs"]
mod take_over;
#[path = "time_travel.rs"]
mod time_travel;
#[path = "version_skew.rs"]
mod version_skew;
#[path = "watch_and_config.rs"]
mod watch_and_config;
#[path = "webhook_down.rs"]
mod webhook_down;
