//! The breaker by itself, in examples, and a cluster full of accidents around it.

mod owners;
mod records;
mod rules;
mod scene;
mod simulation;
mod traps;
