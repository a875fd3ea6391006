//! What the breaker stores in the status of a policy, as the status has it (`docs/retention.md`, R40).

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use trainjob_api::{
    lifecycle::v1alpha1::status::{self as api, RetentionPolicyStatus, TrippedNamespace},
    time::Timestamp,
};
use trainjob_retention_core::breaker::{Reason, Record, Scope, Trip, TripId};

/// What a status says; `None` if it does not say under which digest what was enforced until when.
#[must_use]
pub(crate) fn read(status: &RetentionPolicyStatus) -> Option<Record> {
    Some(Record {
        digest: status.digest.as_deref()?.into(),
        through: Timestamp::from(status.enforced_through.as_ref()?),
        trip: status.trip.as_ref().map(read_trip),
    })
}

/// A trip without a time counts as one of the last moment that there is: whatever is due may have been counted.
fn read_trip(trip: &api::Trip) -> Trip {
    let at = trip.at.as_ref().map_or(Timestamp(i64::MAX), Timestamp::from);
    let reason =
        if trip.reason == name(Reason::ClockStep) { Reason::ClockStep } else { Reason::MassDelete };
    let scope = match &trip.namespaces {
        None => Scope::Policy { reason, count: trip.unexpected },
        Some(namespaces) => {
            let count = |it: &TrippedNamespace| (Arc::from(it.name.as_str()), it.unexpected);
            Scope::Namespaces(namespaces.iter().map(count).collect())
        }
    };
    Trip { id: TripId::from(trip.id.as_str()), at, stock: trip.stock, scope }
}

/// Writes a record into a status; without one, the status is cleared of it.
pub(super) fn write(record: Option<&Record>, status: &mut RetentionPolicyStatus) {
    status.digest = record.map(|record| record.digest.to_string());
    status.enforced_through = record.map(|record| Time::from(record.through));
    status.trip = record.and_then(|record| record.trip.as_ref()).map(written_trip);
}

fn written_trip(trip: &Trip) -> api::Trip {
    let namespaces = match &trip.scope {
        Scope::Policy { .. } => None,
        Scope::Namespaces(namespaces) => {
            let written = namespaces.iter().map(|(name, unexpected)| TrippedNamespace {
                name: name.to_string(),
                unexpected: *unexpected,
            });
            Some(written.collect())
        }
    };
    api::Trip {
        id: trip.id.to_string(),
        reason: name(trip.reason()).to_owned(),
        unexpected: trip.count(),
        stock: trip.stock,
        namespaces,
        at: Some(trip.at.into()),
    }
}

const fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::MassDelete => "MassDelete",
        Reason::ClockStep => "ClockStep",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let trip = |scope| Trip {
            id: TripId::from("7-d-1795329000"),
            at: Timestamp(1_795_329_000),
            stock: 9_000,
            scope,
        };
        let of_clock = Scope::Policy { reason: Reason::ClockStep, count: 3 };
        let of_mass = Scope::Policy { reason: Reason::MassDelete, count: 8_213 };
        let in_namespaces = Scope::Namespaces([("a".into(), 70), ("b".into(), 51)].into());
        let scopes = [of_clock, of_mass, in_namespaces].map(|scope| Some(trip(scope)));
        for trip in scopes.into_iter().chain([None]) {
            let record = Record { digest: "d".into(), through: Timestamp(1_795_329_060), trip };
            let mut status = RetentionPolicyStatus::default();
            write(Some(&record), &mut status);
            assert_eq!(read(&status), Some(record));
            write(None, &mut status);
            assert_eq!(status, RetentionPolicyStatus::default());
        }
        assert_eq!(read(&RetentionPolicyStatus::default()), None);
    }
}
