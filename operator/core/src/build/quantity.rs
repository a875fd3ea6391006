//! Kubernetes quantities such as `2`, `500m` or `1.5Gi`, as whole numbers.
//!
//! A quantity is a decimal number and a suffix that scales it by a power of two or of ten. What is asked
//! of it here is how many whole units it is, rounded up, and in [`amount`](super::amount) how many
//! billionths of one. The arithmetic is on integers and exact. (The one crate for it, `kube_quantity`, is
//! tied to one version of `k8s-openapi` and rounds.)

/// The whole units in `quantity`, rounded up; 0 below zero; at most `i64::MAX`, as in Kubernetes.
///
/// `None` if it is not a quantity.
pub(crate) fn whole_units(quantity: &str) -> Option<i64> {
    Some(i64::try_from(parts(quantity, 0)?).unwrap_or(i64::MAX))
}

/// How many times ten to the power of `-digits` is in `quantity`, rounded up; 0 below zero.
///
/// `None` if it is not a quantity.
pub(crate) fn parts(quantity: &str, digits: i64) -> Option<u128> {
    let (negative, unsigned) = match quantity.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, quantity.strip_prefix('+').unwrap_or(quantity)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (bits, tens) = scale(suffix)?;
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }

    // The number is value * 2^bits * 10^power, and a bit more if there is a rest.
    let mut value: u128 = 0;
    let mut power = digits + tens - i64::try_from(fraction.len()).ok()?;
    let mut rest = false;
    for digit in whole.chars().chain(fraction.chars()).filter_map(|c| c.to_digit(10)) {
        if value < SIGNIFICANT {
            value = value * 10 + u128::from(digit);
        } else {
            rest |= digit != 0;
            power += 1;
        }
    }
    value <<= bits;
    for _ in 0..power.min(MANY) {
        value = value.saturating_mul(10);
    }
    while power < 0 && value > 0 {
        rest |= !value.is_multiple_of(10);
        value /= 10;
        power += 1;
    }
    Some(if negative { 0 } else { value.saturating_add(rest.into()) })
}

/// Digits are taken while the value is below this: 19 of them, as many as `i64::MAX` has. Shifted by
/// the 60 bits of `Ei` that still fits.
const SIGNIFICANT: u128 = 10_u128.pow(18);

/// A power of ten that exceeds every `u128`.
const MANY: i64 = 39;

/// The powers of two and of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(u32, i64)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        // `12e6`; the exponent has a sign of its own.
        _ => (0, suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?.into()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_are_rounded_up_to_whole_units() {
        for (quantity, expected) in [
            ("0", 0),
            ("4", 4),
            ("+4", 4),
            ("-4", 0),
            ("2500m", 3),
            ("3000m", 3),
            ("3.7", 4),
            ("0.7", 1),
            (".5", 1),
            ("2.", 2),
            ("1n", 1),
            ("1000000u", 1),
            ("0m", 0),
            ("2k", 2_000),
            ("1.5Ki", 1_536),
            ("1e3", 1_000),
            ("1E3", 1_000),
            ("1e+3", 1_000),
            ("25e-1", 3),
            ("1E", 1_000_000_000_000_000_000),
            ("7Ei", 7 << 60),
            ("8Ei", i64::MAX),
            ("1e99", i64::MAX),
            ("0e99", 0),
            ("1e-2147483647", 1),
            ("0.00000000000000000000000000000000000000000001", 1),
            ("1.00000000000000000000000000000000000000000000", 1),
            ("1.00000000000000000000000000000000000000000001", 2),
            ("99999999999999999999999999999999999999999999", i64::MAX),
            ("12345678901234567890123e-10", 1_234_567_890_124),
        ] {
            assert_eq!(whole_units(quantity), Some(expected), "{quantity}");
        }
    }

    #[test]
    fn anything_else_is_not_a_quantity() {
        for garbage in [
            "",
            ".",
            "-",
            "m",
            "1..2",
            "1.2.3",
            "1 ",
            " 1",
            "1K",
            "1ki",
            "1x",
            "1e",
            "1e1e1",
            "--1",
            "NaN",
            "1e9999999999",
            "½",
        ] {
            assert_eq!(whole_units(garbage), None, "{garbage}");
        }
    }

    proptest! {
        #[test]
        fn every_string_has_an_answer(text in ".{0,12}|[-+]?[0-9.]{0,40}[a-zA-Z]{0,2}[-+]?[0-9]{0,12}") {
            let _ = whole_units(&text);
        }

        #[test]
        fn thousandths_round_up(units in 0..1_000_000_i64, thousandths in 1..1_000_i64) {
            let millis = format!("{}m", units * 1_000 + thousandths);
            prop_assert_eq!(whole_units(&millis), Some(units + 1));
        }
    }
}
