//! What goes wrong while the load runs. The times are part of the faults: how long a host sleeps,
//! how long a network is cut.

use std::time::Duration;

use ctx_testkit::Random;

use crate::cluster::Host;
use crate::database::Database;
use crate::host::LEASE;
use crate::relay::Network;

/// A fault, of a host if it names one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Nemesis {
    Kill,
    /// The host sleeps through its lease.
    Pause,
    /// The network to the database is cut.
    Cut(Network),
    /// The host's clock is wrong by ten seconds.
    Skew,
    /// The primary crashes, and starts again.
    Crash,
    /// The primary ends, and the standby takes over.
    FailOver,
    /// The same, after the standby was not reached for longer than a statement may run.
    IsolatedFailOver,
    /// The same, after the primary crashed and came back with writes that the standby lacks.
    CrashedFailOver,
    /// The primary's disk is full.
    FullDisk,
    /// The same, when the write-ahead log needs a new file: the primary ends.
    FullDiskOfLog,
}

/// All of them.
const ALL: [Nemesis; 11] = [
    Nemesis::Kill,
    Nemesis::Pause,
    Nemesis::Cut(Network::Cut),
    Nemesis::Skew,
    Nemesis::Cut(Network::Silent),
    Nemesis::Crash,
    Nemesis::FailOver,
    Nemesis::IsolatedFailOver,
    Nemesis::CrashedFailOver,
    Nemesis::FullDisk,
    Nemesis::FullDiskOfLog,
];

impl Nemesis {
    /// Returns at least `count` faults: each kind as often as the others, in random order. Disks are
    /// full only if the database `has_disk`.
    pub(crate) fn plan(random: &mut Random, count: usize, has_disk: bool) -> Vec<Self> {
        let kinds = ALL.into_iter().filter(|kind| has_disk || !kind.is_of_disk());
        let kinds: Vec<Self> = kinds.collect();
        let mut left = Vec::new();
        let next = |_| {
            if left.is_empty() {
                left.clone_from(&kinds);
            }
            left.swap_remove(random.below(left.len()))
        };
        (0..count.max(kinds.len())).map(next).collect()
    }

    /// Whether a disk is full.
    fn is_of_disk(self) -> bool {
        matches!(self, Self::FullDisk | Self::FullDiskOfLog)
    }

    /// Does it, and returns when it is over.
    pub(crate) async fn strike(self, random: &mut Random, host: &Host, database: &mut Database) {
        match self {
            Self::Kill => host.kill().await,
            Self::Pause => {
                host.signal("STOP").await;
                tokio::time::sleep(LEASE + milliseconds(random, 200..=2000)).await;
                host.signal("CONT").await;
            }
            Self::Cut(network) => {
                host.network.set(network);
                tokio::time::sleep(milliseconds(random, 300..=5000)).await;
                host.network.set(Network::Open);
            }
            Self::Skew => {
                let skew = [-10_000, 0, 10_000][random.below(3)];
                host.skew(skew);
            }
            Self::Crash => database.crash(),
            Self::FailOver => database.fail_over(),
            Self::IsolatedFailOver => {
                database.set_replication(Network::Silent);
                tokio::time::sleep(milliseconds(random, 2500..=4000)).await;
                database.fail_over();
            }
            Self::CrashedFailOver => {
                database.set_replication(Network::Silent);
                tokio::time::sleep(milliseconds(random, 500..=1500)).await;
                database.crash();
                tokio::time::sleep(milliseconds(random, 1000..=3000)).await;
                database.fail_over();
            }
            Self::FullDisk | Self::FullDiskOfLog => {
                let ends_log = matches!(self, Self::FullDiskOfLog);
                database.fill_disk(ends_log, milliseconds(random, 1000..=4000)).await;
            }
        }
    }
}

fn milliseconds(random: &mut Random, range: std::ops::RangeInclusive<usize>) -> Duration {
    Duration::from_millis(random.within(range) as u64)
}
