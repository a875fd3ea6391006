//! What goes on beside the passes over objects: evaluations, judgements, and leave for those that stand in lines.

use std::convert::Infallible;

use tokio::time::{Instant, sleep, timeout_at};
use trainjob_engine::controller::Controller;
use trainjob_process::server_time::boot_time;

use super::Remover;
use crate::{cluster_state::Judgement, key::position, second::next_second};

/// How many objects are evaluated at a time; others want the state, too.
const SLICE: usize = 1_000;

impl Remover {
    /// Evaluates what has to be evaluated, in slices, for ever.
    pub async fn evaluate(&self) -> Infallible {
        loop {
            // Time alone can make it possible, so it is tried now and then.
            let _ = timeout_at(next_second(), self.to_evaluate.notified()).await;
            self.judge();
            let (begun, mut is_evaluated) = (Instant::now(), false);
            loop {
                let slice = self.state().evaluate(SLICE, self.clock.now());
                let Some(slice) = slice else { break };
                for (key, at) in slice.later {
                    self.look_at(&key, Some(at));
                }
                self.queue.add_all(slice.look);
                is_evaluated = true;
                tokio::task::yield_now().await;
            }
            if is_evaluated {
                self.metrics.evaluated(begun.elapsed());
                self.evaluations.send_replace(());
            }
        }
    }

    /// Judges what has changed. Changes of about a second are judged together.
    fn judge(&self) {
        let judgements = self.state().judge(self.clock.now(), boot_time());
        for Judgement { acknowledged, tripped, policy, .. } in judgements {
            if let Some(trip) = acknowledged {
                tracing::info!(%policy, id = %trip.id, "the trip of a policy is acknowledged");
            }
            if let Some(trip) = tripped {
                let (id, waits, stock) = (&trip.id, trip.count(), trip.stock);
                tracing::warn!(%policy, %id, waits, stock, "a policy has tripped");
            }
        }
    }

    /// Gives leave to those that stand in lines, at the rates of their policies, for ever.
    pub async fn keep_rates(&self) -> Infallible {
        loop {
            let given = self.state().give_leave(self.clock.now(), boot_time());
            match given {
                Ok(key) => self.wake(key, position(None, None)),
                Err(Some(wait)) => sleep(wait).await,
                // As above.
                Err(None) => {
                    let _ = timeout_at(next_second(), self.in_line.notified()).await;
                }
            }
        }
    }
}
