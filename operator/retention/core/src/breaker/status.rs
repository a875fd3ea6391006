//! A record as the status of a policy has it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use trainjob_api::{
    lifecycle::v1alpha1::status::{self, PolicyReason, RetentionPolicyStatus, TrippedNamespace},
    time::Timestamp,
};

use super::record::{Reason, Record, Scope, Trip, TripId};

impl Record {
    /// What a status stores; `None` if there is nothing to go on from, so that the policy is judged as a new one.
    #[must_use]
    pub fn read(status: &RetentionPolicyStatus) -> Option<Self> {
        let through = Timestamp::from(status.enforced_through.as_ref()?);
        let digest = status.digest.as_deref()?.into();
        Some(Self { digest, through, trip: status.trip.as_ref().map(|trip| read(trip, through)) })
    }

    /// Writes it into a status, in place of what was there.
    pub fn write(&self, status: &mut RetentionPolicyStatus) {
        status.digest = Some(self.digest.to_string());
        status.enforced_through = Some(Time::from(self.through));
        status.trip = self.trip.as_ref().map(write);
    }

    /// Removes it from the status of a policy that does not enforce. The digest stays, and is not enough to go on from.
    pub fn clear(status: &mut RetentionPolicyStatus) {
        (status.enforced_through, status.trip) = (None, None);
    }
}

/// A trip that is not understood, as one of a later version may be, stops everything until it is acknowledged.
fn read(trip: &status::Trip, through: Timestamp) -> Trip {
    let count = trip.unexpected;
    let at = trip.at.as_ref().map(Timestamp::from);
    let is_mass = trip.reason == PolicyReason::MassDelete.as_str() && at.is_some();
    let scope = match trip.namespaces.as_deref().filter(|_| is_mass) {
        None if is_mass => Scope::Policy { reason: Reason::MassDelete, count },
        None | Some([]) => Scope::Policy { reason: Reason::ClockStep, count },
        Some(namespaces) => {
            let counts = namespaces.iter().map(|it| (it.name.as_str().into(), it.unexpected));
            Scope::Namespaces(counts.collect())
        }
    };
    let id = TripId::from(trip.id.as_str());
    Trip { id, at: at.unwrap_or(through), stock: trip.stock, scope }
}

fn write(trip: &Trip) -> status::Trip {
    let namespaces = match &trip.scope {
        Scope::Policy { .. } => None,
        Scope::Namespaces(namespaces) => Some(namespaces.iter().map(|(name, unexpected)| {
            TrippedNamespace { name: name.to_string(), unexpected: *unexpected }
        })),
    };
    let reason = match trip.reason() {
        Reason::MassDelete => PolicyReason::MassDelete,
        Reason::ClockStep => PolicyReason::ClockStep,
    };
    status::Trip {
        id: trip.id.to_string(),
        reason: reason.as_str().to_owned(),
        unexpected: trip.count(),
        stock: trip.stock,
        namespaces: namespaces.map(Iterator::collect),
        at: Some(Time::from(trip.at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(scope: Option<Scope>) -> Record {
        let at = Timestamp(1_767_520_800);
        let trip = scope.map(|scope| Trip { id: TripId::from("7-d-1"), at, stock: 9, scope });
        Record { digest: "d".into(), through: at.plus(-60), trip }
    }

    fn written(scope: Option<Scope>) -> RetentionPolicyStatus {
        let mut status = RetentionPolicyStatus::default();
        record(scope).write(&mut status);
        status
    }

    const WHOLE: Scope = Scope::Policy { reason: Reason::MassDelete, count: 51 };

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let names = Scope::Namespaces([("a".into(), 70), ("b".into(), 51)].into());
        let clock = Scope::Policy { reason: Reason::ClockStep, count: 0 };
        for scope in [None, Some(WHOLE), Some(names), Some(clock)] {
            assert_eq!(Record::read(&written(scope.clone())), Some(record(scope)));
        }
    }

    #[test]
    fn a_trip_that_is_not_understood_stops_all_until_it_is_acknowledged() {
        let known = written(Some(Scope::Namespaces([("a".into(), 70)].into()))).trip.unwrap();
        for trip in [
            status::Trip { reason: "Later".to_owned(), ..known.clone() },
            status::Trip { at: None, ..known.clone() },
            status::Trip { namespaces: Some(Vec::new()), ..known },
        ] {
            let status = RetentionPolicyStatus { trip: Some(trip), ..written(None) };
            let scope = Record::read(&status).unwrap().trip.unwrap().scope;
            let expected = Scope::Policy { reason: Reason::ClockStep, count: 70 };
            assert_eq!(scope, expected, "{status:?}");
        }
    }

    #[test]
    fn there_is_nothing_to_go_on_from_in_a_new_or_a_cleared_status() {
        let mut cleared = written(Some(WHOLE));
        Record::clear(&mut cleared);
        assert_eq!(cleared.digest.as_deref(), Some("d"));
        let no_digest = RetentionPolicyStatus { digest: None, ..written(None) };
        for status in [RetentionPolicyStatus::default(), cleared, no_digest] {
            assert_eq!(Record::read(&status), None, "{status:?}");
        }
    }
}
