//! Numbers of several rounds or of many objects, put into a few.

use std::fmt;

use serde::Serialize;

/// What came of several rounds: the middle and the ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Spread {
    /// The median; of an even number, the lower one of the two in the middle.
    pub(super) median: f64,
    /// The smallest.
    pub(super) min: f64,
    /// The largest.
    pub(super) max: f64,
}

impl Spread {
    /// The spread of `values`; of none, all are not a number.
    #[must_use]
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let sorted = sorted(values);
        Self {
            median: quantile(&sorted, 0.5),
            min: quantile(&sorted, 0.0),
            max: quantile(&sorted, 1.0),
        }
    }
}

impl fmt::Display for Spread {
    /// `3.2 (3.0–4.1)`, with the precision asked for or none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        let Self { median, min, max } = self;
        write!(f, "{median:.digits$} ({min:.digits$}–{max:.digits$})")
    }
}

/// How long something took, for many objects, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Times {
    /// The shortest.
    pub(super) first: f64,
    /// Half of them took no longer.
    pub(super) p50: f64,
    /// All but one of a hundred took no longer.
    pub(super) p99: f64,
    /// The longest.
    pub(super) last: f64,
}

impl Times {
    /// The times of `values`, in milliseconds; of none, all are not a number.
    #[must_use]
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let sorted = sorted(values);
        Self {
            first: quantile(&sorted, 0.0),
            p50: quantile(&sorted, 0.5),
            p99: quantile(&sorted, 0.99),
            last: quantile(&sorted, 1.0),
        }
    }
}

/// A whole number as a fraction; exact up to 2^53, which nothing that is counted here comes near.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "nothing counted here comes near 2^53")]
pub(super) const fn float(count: usize) -> f64 {
    count as f64
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The smallest of `sorted` that is not exceeded by this share of them.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * float(sorted.len())).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank lies between 0 and the number of values"
    )]
    let index = (rank as usize).saturating_sub(1);
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        for (values, p50, p99) in [
            (vec![7.0], 7.0, 7.0),
            (vec![3.0, 1.0, 2.0], 2.0, 3.0),
            (vec![4.0, 3.0, 2.0, 1.0], 2.0, 4.0),
            ((1..=200).map(float).collect(), 100.0, 198.0),
        ] {
            let times = Times::of(values.iter().copied());
            assert!((times.p50, times.p99) == (p50, p99), "{values:?}: {times:?}");
            assert!(times.first <= times.p50 && times.p99 <= times.last, "{times:?}");
        }
        assert!(Times::of([]).p50.is_nan());
    }

    #[test]
    fn a_spread_shows_the_middle_and_the_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0]);
        assert_eq!(format!("{spread:.1}"), "2.0 (1.0–3.0)");
        assert_eq!(spread.to_string(), "2 (1–3)");
    }
}
