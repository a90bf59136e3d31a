//! Figures, and how they are measured.

use anyhow::Result;
use cpu_time::ProcessTime;
use serde::Serialize;

/// A measured figure of ctx, beside those that it is compared with in the same run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// The group that measured it.
    pub(crate) group: &'static str,
    /// Identifies the figure between two runs.
    pub(crate) id: String,
    /// What is measured.
    pub(crate) what: String,
    /// The unit: `ms`, `µs`, `s`, `MiB`, or a text of its own.
    pub(crate) unit: &'static str,
    pub(crate) ctx: f64,
    /// Another program that does the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<Beside>,
    /// The least that any program does for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<Beside>,
    /// What the figure is to reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) goals: Vec<Goal>,
}

/// A figure that ctx is compared with.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Beside {
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// What a figure is to reach.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Goal {
    /// At most this much, in the unit of the figure.
    AtMost(f64),
    /// At most this part of the peer's figure.
    OfPeer(f64),
    /// At most this many times the limit.
    OfLimit(f64),
}

impl Figure {
    pub(crate) fn new(
        id: impl Into<String>,
        what: impl Into<String>,
        unit: &'static str,
        ctx: f64,
    ) -> Self {
        let (id, what) = (id.into(), what.into());
        Self { group: "", id, what, unit, ctx, peer: None, limit: None, goals: Vec::new() }
    }

    pub(crate) fn beside_peer(mut self, name: impl Into<String>, value: f64) -> Self {
        self.peer = Some(Beside { name: name.into(), value });
        self
    }

    pub(crate) fn beside_limit(mut self, name: impl Into<String>, value: f64) -> Self {
        self.limit = Some(Beside { name: name.into(), value });
        self
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goals.push(goal);
        self
    }
}

/// Something that is measured; returns the figure of one run.
pub(crate) type Side<'a> = Box<dyn FnMut() -> Result<f64> + 'a>;

/// Runs the sides in turn, so that a busy moment affects all of them, in another order each round, and
/// returns the median of each. The first round is not counted.
pub(crate) fn medians<const N: usize>(rounds: usize, mut sides: [Side<'_>; N]) -> Result<[f64; N]> {
    let mut all: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for round in 0..=rounds {
        for turn in 0..N {
            let at = (turn + round) % N;
            let figure = sides[at]()?;
            if round > 0 {
                all[at].push(figure);
            }
        }
    }
    Ok(all.map(|mut figures| quantile(&mut figures, 0.5)))
}

/// Returns the CPU seconds of a call, and its result, so that dropping it is not measured.
pub(crate) fn cpu_s<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let started = ProcessTime::now();
    let made = work()?;
    Ok((started.elapsed().as_secs_f64(), made))
}

/// Returns the figure below which this share of them is; 0 if there are none.
pub(crate) fn quantile(figures: &mut [f64], share: f64) -> f64 {
    figures.sort_by(f64::total_cmp);
    let at = (figures.len() as f64 * share) as usize;
    figures.get(at.min(figures.len().saturating_sub(1))).copied().unwrap_or_default()
}
