//! The proof: a real control plane in a box, and what runs in it.
mod access;
pub mod apply;
pub mod binaries;
mod cache;
pub mod cluster;
pub mod component;
pub mod credentials;
pub mod guard;
mod jobset;
mod kwok;
mod modules;
mod nodes;
pub mod operator;
pub mod ports;
pub mod process;
pub mod until;
pub mod workspace;
pub mod yaml;
