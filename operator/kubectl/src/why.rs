//! `why`: why a TrainJob is as it is, and what its user can do.
//!
//! * [`scene`]: everything that an answer is made of.
//! * `own`: which of the objects with a job's name are its own.
//! * [`answer`]: an answer.
//! * [`explain`]: from the one to the other: the causes, in the order in which they win.
//! * [`start`], [`conflict`], [`pods`], [`end`], [`release`]: the causes, by the time of a job's life.
//! * `stay`: how long a finished job stays.
//! * `gone`: what is said of a TrainJob that is not there.
//! * [`words`]: sentences that several of them need.

pub mod answer;
pub mod conflict;
pub mod end;
pub mod explain;
mod gone;
mod own;
pub mod pods;
pub mod release;
pub mod scene;
pub mod start;
mod stay;
#[cfg(test)]
mod testing;
pub mod words;

use std::io::Write;

use self::{explain::explain, scene::Scene};
use crate::{access::Access, arguments::WhyArguments, failure::Failure};

/// Prints why a TrainJob is as it is.
///
/// # Errors
///
/// There is no such TrainJob, which says who deleted it, if an event tells; or the API server refuses or does not answer. What else cannot be read is left out of the
/// answer, which says so.
pub async fn run(
    access: &Access,
    arguments: &WhyArguments,
    mut out: impl Write,
) -> Result<(), Failure> {
    let clock = arguments.deadline_clock.map(Into::into);
    let answer = match Scene::read(access, &arguments.name, clock).await {
        Ok(scene) => explain(&scene),
        Err(missing @ Failure::NotFound { .. }) => {
            let of = (&*access.namespace, &*arguments.name);
            return Err(gone::explain(&access.client, of, missing).await);
        }
        Err(failure) => return Err(failure),
    };
    if arguments.output.is_some() {
        serde_json::to_writer_pretty(&mut out, &answer).map_err(std::io::Error::from)?;
        Ok(writeln!(out)?)
    } else {
        Ok(write!(out, "{answer}")?)
    }
}
