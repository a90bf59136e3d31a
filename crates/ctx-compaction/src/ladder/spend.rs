//! The cost limit for the calls of one compaction.

/// Money spent and money reserved for calls in progress, in USD.
///
/// A call is allowed if its estimate fits beside both. Parallel calls therefore cannot exceed the
/// limit together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spend {
    cap: Option<f64>,
    spent: f64,
    promised: f64,
    /// Whether any price was known.
    priced: bool,
}

impl Spend {
    /// Sets the cap. A cap that is NaN allows no call that has a price.
    pub(crate) fn new(cap: Option<f64>) -> Self {
        Self { cap: cap.map(|cap| if cap.is_nan() { 0.0 } else { cap }), ..Self::default() }
    }

    pub(crate) fn is_capped(&self) -> bool {
        self.cap.is_some()
    }

    /// Returns what is left under the cap.
    pub(crate) fn left(&self) -> Option<f64> {
        self.cap.map(|cap| (cap - self.spent - self.promised).max(0.0))
    }

    /// Reserves `estimate` for a call; `false` if that would exceed the cap. A model without a
    /// price is allowed: it is usually self-hosted.
    pub(crate) fn promise(&mut self, estimate: Option<f64>) -> bool {
        let estimate = sound(estimate).unwrap_or(0.0);
        let fits = self.left().is_none_or(|left| estimate <= left);
        if fits {
            self.promised += estimate;
        }
        fits
    }

    /// Ends a call with reservation `estimate` and cost `actual`. Without `actual` the estimate is
    /// charged: an answer is billed even if its usage is unknown, and a partial one may be.
    pub(crate) fn settle(&mut self, estimate: Option<f64>, actual: Option<f64>) -> Option<f64> {
        let estimate = sound(estimate);
        self.promised = (self.promised - estimate.unwrap_or(0.0)).max(0.0);
        let cost = sound(actual).or(estimate);
        self.spent += cost.unwrap_or(0.0);
        self.priced |= cost.is_some();
        cost
    }

    /// Ends a call that was refused before any work, and so cost nothing.
    pub(crate) fn release(&mut self, estimate: Option<f64>) -> Option<f64> {
        self.promised = (self.promised - sound(estimate).unwrap_or(0.0)).max(0.0);
        None
    }

    /// Returns the money spent, if any price was known.
    pub(crate) fn total(&self) -> Option<f64> {
        self.priced.then_some(self.spent)
    }
}

/// A price comes from a table or a plug-in; an invalid one counts as unknown.
fn sound(cost: Option<f64>) -> Option<f64> {
    cost.filter(|cost| cost.is_finite() && *cost >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_under_way_count_against_the_cap() {
        let mut spend = Spend::new(Some(1.0));
        assert!(spend.promise(Some(0.6)));
        assert!(!spend.promise(Some(0.6)), "two of them would be 1.2");
        assert_eq!(spend.settle(Some(0.6), Some(0.1)), Some(0.1));
        assert!(spend.promise(Some(0.6)));
        spend.release(Some(0.6));
        assert!(spend.promise(Some(0.9)));
        assert_eq!(spend.settle(Some(0.9), None), Some(0.9), "charged at its estimate");
        assert!(!spend.promise(Some(0.1)));
        assert_eq!(spend.total(), Some(1.0));
    }

    #[test]
    fn prices_and_caps_that_make_no_sense_open_no_door() {
        let mut spend = Spend::new(Some(f64::NAN));
        assert!(!spend.promise(Some(0.01)));
        assert!(spend.promise(None), "no price is known");
        assert_eq!(spend.settle(None, Some(f64::INFINITY)), None);
        assert_eq!(spend.total(), None);
        let mut spend = Spend::new(Some(-1.0));
        assert!(!spend.promise(Some(0.01)));
        assert!(Spend::new(None).promise(Some(1e9)));
    }
}
