//! The rules, each a pure function of the arranged history.
//!
//! Where a history does not tell what a rule needs to know, such as the answer to a request, the rule
//! says nothing: what it does say is certain.

mod deadline;
mod delete;
mod due;
mod fairness;
mod identity;
mod monotone;
mod one;
mod pressure;
mod quiet;
mod release;
mod terminal;
mod version;
mod watches;

pub(crate) use identity::broken;

use crate::{index::Index, violation::Violation};

/// One rule, or the part of one.
type Check = fn(&Index<'_>) -> Vec<Violation>;

/// All of them.
pub(crate) const CHECKS: &[Check] = &[
    delete::no_early_delete,
    identity::changes_name_what_is_ours,
    identity::creations_name_their_job,
    terminal::terminal_is_final,
    terminal::nothing_new_after_the_end,
    deadline::no_early_deadline,
    one::at_most_one_child,
    release::durable_before_destroy,
    version::user_edits_win,
    identity::permissions_that_nobody_has,
    pressure::few_at_a_time,
    pressure::retry_after_is_honoured,
    pressure::no_hot_loop,
    pressure::no_write_without_change,
    monotone::status_never_goes_back,
    due::every_ttl_ends_in_absence,
    due::every_deadline_ends_in_release,
    quiet::what_is_settled_is_not_written,
    watches::stalled_watches_are_replaced,
];
