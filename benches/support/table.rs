//! An aligned table on standard output, and the one clock of the benches.

use std::time::Instant;

/// Rows under a heading; the first column is flush left, the others flush right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self {
            rows: vec![heading.iter().map(ToString::to_string).collect()],
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn print(&self, title: &str) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(String::len).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        println!("{title}");
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line += &format!("  {cell:<width$}");
                } else {
                    line += &format!("  {cell:>width$}");
                }
            }
            println!("{}", line.trim_end());
        }
        println!();
    }
}

/// Benches measure real time, whatever clock the limiter under test uses.
pub(crate) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
    Instant::now()
}
