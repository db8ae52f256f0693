//! Lengths of time, counted in bounded memory.

/// So many equal parts between two powers of two: what is told is at most a 128th too high, and never too low.
const PARTS: u32 = 7;

#[derive(Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    pub(crate) total: u64,
    pub(crate) most: u64,
}

impl Histogram {
    pub(crate) fn add(&mut self, value: u64) {
        let index = index(value);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
        self.most = self.most.max(value);
    }

    /// The value that `share` of all do not exceed.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return highest(index).min(self.most);
            }
        }
        self.most
    }
}

const fn index(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PARTS + 1);
    ((shift as usize) << PARTS) + (value >> shift) as usize
}

const fn highest(index: usize) -> u64 {
    let half = 1 << PARTS;
    let shift = (index / half).saturating_sub(1);
    let part = (index - shift * half) as u64;
    // Written so that the last one does not overflow.
    (part << shift) + ((1 << shift) - 1)
}
