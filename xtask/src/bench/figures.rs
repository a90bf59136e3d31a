//! The figures that were measured, and on what machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// All figures, by group.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) groups: Vec<Group>,
}

/// The figures of one group, which one run measured.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) run: Run,
    pub(super) figures: Vec<Figure>,
}

/// When and where was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) date: String,
    pub(super) commit: String,
    pub(super) machine: String,
    pub(super) rustc: String,
    /// The load of the machine at the start.
    pub(super) load: f64,
}

/// A figure as `ctx-limits` prints it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) group: String,
    pub(super) id: String,
    pub(super) what: String,
    pub(super) unit: String,
    pub(super) ctx: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer: Option<Beside>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<Beside>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) goals: Vec<Goal>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Beside {
    pub(super) name: String,
    pub(super) value: f64,
}

/// What a figure is to reach.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Goal {
    AtMost(f64),
    OfPeer(f64),
    OfLimit(f64),
}

impl Figure {
    /// Returns how many times the goal the figure is: more than 1 misses it. `None` if there is nothing
    /// to compare it with.
    pub(super) fn times(&self, goal: Goal) -> Option<f64> {
        let most = match goal {
            Goal::AtMost(most) => most,
            Goal::OfPeer(part) => part * self.peer.as_ref()?.value,
            Goal::OfLimit(times) => times * self.limit.as_ref()?.value,
        };
        (most > 0.0).then(|| self.ctx / most)
    }
}

impl Figures {
    pub(super) fn read(path: &Path) -> Result<Self> {
        match std::fs::read(path) {
            Ok(json) => serde_json::from_slice(&json).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let json = serde_json::to_string_pretty(self)?;
        std::fs::write(path, json + "\n").with_context(|| path.display().to_string())
    }

    /// Adds a figure of a run to its group. The figures of earlier runs leave the group.
    pub(super) fn add(&mut self, run: &Run, figure: Figure) {
        let of_run = |group: &&mut Group| group.name == figure.group && group.run.is(run);
        match self.groups.iter_mut().find(of_run) {
            Some(group) => group.figures.push(figure),
            None => {
                self.groups.retain(|group| group.name != figure.group);
                let (name, run) = (figure.group.clone(), run.clone());
                self.groups.push(Group { name, run, figures: vec![figure] });
            }
        }
    }

    pub(super) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}

impl Run {
    fn is(&self, other: &Self) -> bool {
        self.date == other.date && self.load.to_bits() == other.load.to_bits()
    }

    pub(super) fn now(root: &Path) -> Result<Self> {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let after = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key))?.to_owned();
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        let cpu = after(&text("/proc/cpuinfo"), "model name").unwrap_or("unknown CPU".to_owned());
        let kib = after(&text("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib: f64 = kib.trim_end_matches(" kB").parse().unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let system = text("/proc/sys/kernel/osrelease");
        let system: Vec<_> = system.trim().split('.').take(2).collect();
        let load = text("/proc/loadavg");
        Ok(Self {
            date: jiff::Zoned::now().strftime("%Y-%m-%d %H:%M").to_string(),
            commit: output(root, "git", &["describe", "--always", "--dirty"])?,
            machine: format!(
                "{cpu}, {cores} cores, {:.0} GiB, Linux {}",
                kib / f64::from(1 << 20),
                system.join(".")
            ),
            rustc: output(root, "rustc", &["--version"])?,
            load: load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default(),
        })
    }
}

/// Returns what a program prints.
fn output(root: &Path, program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).current_dir(root).output();
    let output = output.with_context(|| program.to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
