//! The test environment: a real control plane in a folder, the programs under test on it, and what tests share.
//!
//! From the ground up:
//!
//! * the machine: [`workspace`], `cache`, [`ports`], [`guard`], [`process`], [`until`], [`stopped`];
//! * what runs: [`binaries`] builds the programs, `modules` finds the files that come with them;
//! * the box: [`cluster`] starts its [`component`]s as its `options` say, with `jobset`, `kwok` and `nodes`, in its `site`;
//!   [`credentials`] and [`authority`] say who is who, and `access` gives tests an identity of their own;
//! * what else may run in it: a second API server that falls behind ([`stale_apiserver`]), [`kueue`], [`coscheduling`], [`volcano`], `trainer`, and a [`node`] with a real kubelet;
//! * the product: [`chart`] has what is installed, [`product`] is what the [`operator`], the [`webhook`] and the [`retention`] engine have in common,
//!   [`release`] runs both as a release would, [`shifted_clock`] gives a program a wrong clock;
//! * the tests: [`fixtures`] has a namespace for each, [`apply`], [`answer`], [`metrics_page`] and [`yaml`] are their tools,
//!   and [`recorder`] writes down what the watches of a run deliver.

pub(crate) mod access;
pub mod accounting;
pub mod answer;
pub mod apply;
pub mod authority;
pub mod binaries;
pub(crate) mod cache;
pub mod chart;
pub mod cluster;
pub mod component;
pub mod coscheduling;
pub mod credentials;
pub mod discovered;
pub mod fixtures;
pub mod guard;
pub(crate) mod jobset;
pub(crate) mod kinds;
pub mod kueue;
pub(crate) mod kwok;
pub(crate) mod lagging_etcd;
pub mod metrics_page;
pub(crate) mod modules;
pub mod node;
pub(crate) mod nodes;
pub mod operator;
pub(crate) mod options;
pub mod ports;
pub mod process;
pub mod product;
pub mod rbac;
pub(crate) mod ready;
pub mod recorder;
pub mod release;
pub mod retention;
pub(crate) mod sent;
pub(crate) mod service;
pub mod shifted_clock;
pub(crate) mod site;
pub mod stale_apiserver;
pub mod stopped;
pub(crate) mod tools;
pub(crate) mod trainer;
pub mod until;
pub mod volcano;
pub mod webhook;
pub mod workspace;
pub mod yaml;
