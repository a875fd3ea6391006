//! Numbers with bounds.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Unexpected, Visitor},
};

/// A whole number from `MIN` to `MAX`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Whole<const MIN: u32, const MAX: u32>(u32);

/// A TCP port.
pub type Port = Whole<1, 65_535>;

/// How many at a time; at least 1.
pub type Concurrency = Whole<1, MAX_INT32>;

/// A number of seconds, or of tokens in a bucket.
pub type Count = Whole<0, MAX_INT32>;

/// The largest value of Go's `int32`, which the format's integers are.
const MAX_INT32: u32 = i32::MAX.unsigned_abs();

impl<const MIN: u32, const MAX: u32> Whole<MIN, MAX> {
    /// The number `N`. It does not compile if `N` is out of bounds.
    #[must_use]
    pub const fn of<const N: u32>() -> Self {
        const { assert!(MIN <= N && N <= MAX, "out of bounds") };
        Self(N)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    fn expected() -> String {
        format!("a whole number between {MIN} and {MAX}")
    }
}

impl Port {
    /// The number, as an address has it.
    #[must_use]
    pub fn number(self) -> u16 {
        u16::try_from(self.0).unwrap_or(u16::MAX)
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Whole<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("WholeFrom{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer", "minimum": MIN, "maximum": MAX, "x-expected": Self::expected(),
        })
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> Visitor<'_> for WholeVisitor<MIN, MAX> {
    type Value = Whole<MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::Value::expected())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        match u32::try_from(number) {
            Ok(whole) if (MIN..=MAX).contains(&whole) => Ok(Whole(whole)),
            _ => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        match i64::try_from(number) {
            Ok(signed) => self.visit_i64(signed),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }
}

/// How many a second: 0, or from 0.001 to 1,000,000.
///
/// The bounds keep everything that is computed from a rate far from the ends of its type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PerSecond(f64);

impl PerSecond {
    const MIN: f64 = 0.001;
    const MAX: u32 = 1_000_000;
    const EXPECTED: &str = "0 or a number between 0.001 and 1000000";

    /// `N` a second. It does not compile if `N` is out of bounds.
    #[must_use]
    pub fn of<const N: u32>() -> Self {
        const { assert!(N <= Self::MAX, "out of bounds") };
        Self(N.into())
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl JsonSchema for PerSecond {
    fn schema_name() -> Cow<'static, str> {
        "PerSecond".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The schema allows what lies between 0 and the least rate; the programs refuse it.
        json_schema!({
            "type": "number", "minimum": 0, "maximum": Self::MAX, "x-expected": Self::EXPECTED,
        })
    }
}

impl<'de> Deserialize<'de> for PerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PerSecondVisitor)
    }
}

struct PerSecondVisitor;

impl Visitor<'_> for PerSecondVisitor {
    type Value = PerSecond;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PerSecond::EXPECTED)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<PerSecond, E> {
        if number == 0.0 || (PerSecond::MIN..=PerSecond::MAX.into()).contains(&number) {
            Ok(PerSecond(number))
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<PerSecond, E> {
        match u32::try_from(number) {
            Ok(whole) if whole <= PerSecond::MAX => Ok(PerSecond(whole.into())),
            _ => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<PerSecond, E> {
        match i64::try_from(number) {
            Ok(signed) => self.visit_i64(signed),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }
}
