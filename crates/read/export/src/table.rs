//! The Parquet file: its schema, and its row groups sorted by time.

use crate::row::Row;
use anyhow::{Context, Result};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

const SCHEMA: &str = "message event {
  required int64 time (TIMESTAMP(MILLIS,true));
  required int64 serial;
  optional binary host (STRING);
  required binary type (STRING);
  optional int32 pid;
  optional int32 ppid;
  optional int64 auid;
  optional int64 uid;
  optional int64 euid;
  optional int64 ses;
  optional binary user (STRING);
  optional binary exe (STRING);
  optional binary comm (STRING);
  optional binary syscall (STRING);
  optional boolean success;
  optional int64 exit;
  optional binary cwd (STRING);
  optional binary terminal (STRING);
  optional binary remote (STRING);
  optional binary unit (STRING);
  optional binary container (STRING);
  required group keys (LIST) { repeated group list { required binary element (STRING); } }
  required group paths (LIST) { repeated group list { required binary element (STRING); } }
  required group records (LIST) { repeated group list { required group element {
    required binary type (STRING);
    required binary text (STRING);
    optional binary names (STRING);
  } } }
}";

/// Rows of a row group.
const ROWS_MAX: usize = 65_536;
/// Bytes of text of a row group.
const BYTES_MAX: usize = 32 << 20;

/// Writes rows, which come about in the order of their time.
pub(crate) struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: Vec<Row>,
    bytes: usize,
    last_ms: i64,
    /// Rows that were written.
    pub(crate) written: u64,
    /// Row groups that begin before the end of the one before: the log goes back in time there.
    pub(crate) out_of_order: u64,
}

impl<W: Write + Send> Table<W> {
    pub(crate) fn new(out: W) -> Result<Self> {
        let schema = parse_message_type(SCHEMA).context("the schema of the table")?;
        let by_time = SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: false,
        };

        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_created_by(format!("tarsier {}", env!("CARGO_PKG_VERSION")))
            .set_sorting_columns(Some(vec![by_time]))
            .build();
        Ok(Table {
            writer: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            rows: Vec::new(),
            bytes: 0,
            last_ms: i64::MIN,
            written: 0,
            out_of_order: 0,
        })
    }

    pub(crate) fn add(&mut self, row: Row) -> Result<()> {
        self.bytes += row.size_bytes;
        self.rows.push(row);
        if self.rows.len() >= ROWS_MAX || self.bytes >= BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is left, and the end of the file.
    pub(crate) fn finish(mut self) -> Result<(u64, u64)> {
        self.flush()?;
        self.writer.close()?;
        Ok((self.written, self.out_of_order))
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }

        self.rows.sort_by_key(|row| (row.time_ms, row.serial));
        let rows = std::mem::take(&mut self.rows);
        self.out_of_order += u64::from(rows[0].time_ms < self.last_ms);
        self.last_ms = self.last_ms.max(rows[rows.len() - 1].time_ms);
        let mut group = Columns(self.writer.next_row_group()?);
        group.required::<Int64Type>(&rows, |row| row.time_ms)?;
        group.required::<Int64Type>(&rows, |row| row.serial)?;
        group.text(&rows, |row| &row.host)?;

        group.required::<ByteArrayType>(&rows, |row| array(&row.kind))?;
        group.optional::<Int32Type>(&rows, |row| row.pid)?;
        group.optional::<Int32Type>(&rows, |row| row.ppid)?;
        for id in [
            |row: &Row| row.auid,
            |row: &Row| row.uid,
            |row: &Row| row.euid,
            |row: &Row| row.ses,
        ] {
            group.optional::<Int64Type>(&rows, id)?;
        }

        group.text(&rows, |row| &row.user)?;
        group.text(&rows, |row| &row.exe)?;
        group.text(&rows, |row| &row.comm)?;
        group.text(&rows, |row| &row.syscall)?;
        group.optional::<BoolType>(&rows, |row| row.success)?;
        group.optional::<Int64Type>(&rows, |row| row.exit)?;
        group.text(&rows, |row| &row.cwd)?;
        group.text(&rows, |row| &row.terminal)?;

        group.text(&rows, |row| &row.remote)?;
        group.text(&rows, |row| &row.unit)?;
        group.text(&rows, |row| &row.container)?;
        group.list(&rows, 1, |row| row.keys.iter().map(Some).collect())?;
        group.list(&rows, 1, |row| row.paths.iter().map(Some).collect())?;
        group.list(&rows, 1, |row| {
            row.records.iter().map(|each| Some(&each.kind)).collect()
        })?;

        group.list(&rows, 1, |row| {
            row.records.iter().map(|each| Some(&each.text)).collect()
        })?;
        group.list(&rows, 2, |row| {
            row.records.iter().map(|each| each.names.as_ref()).collect()
        })?;
        group.0.close()?;
        self.written += rows.len() as u64;

        self.bytes = 0;
        Ok(())
    }
}

fn array(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

/// The columns of a row group, one after the other in the order of the schema.
struct Columns<'w, W: Write + Send>(SerializedRowGroupWriter<'w, W>);

impl<W: Write + Send> Columns<'_, W> {
    fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        definitions: Option<&[i16]>,
        repetitions: Option<&[i16]>,
    ) -> Result<()> {
        let mut column = self
            .0
            .next_column()?
            .context("more columns than the schema has")?;
        column
            .typed::<T>()
            .write_batch(values, definitions, repetitions)?;
        Ok(column.close()?)
    }

    fn required<T: DataType>(&mut self, rows: &[Row], value: impl Fn(&Row) -> T::T) -> Result<()> {
        let values: Vec<_> = rows.iter().map(value).collect();
        self.write::<T>(&values, None, None)
    }

    fn optional<T: DataType>(
        &mut self,
        rows: &[Row],
        value: impl Fn(&Row) -> Option<T::T>,
    ) -> Result<()> {
        let mut definitions = Vec::with_capacity(rows.len());
        let mut values = Vec::new();
        for row in rows {
            let value = value(row);
            definitions.push(i16::from(value.is_some()));
            values.extend(value);
        }
        self.write::<T>(&values, Some(&definitions), None)
    }

    fn text(&mut self, rows: &[Row], value: impl Fn(&Row) -> &Option<String>) -> Result<()> {
        self.optional::<ByteArrayType>(rows, |row| value(row).as_deref().map(array))
    }

    /// A list, whose elements have definition level `full`, or one less where they are absent.
    fn list(
        &mut self,
        rows: &[Row],
        full: i16,
        elements: impl Fn(&Row) -> Vec<Option<&String>>,
    ) -> Result<()> {
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let elements = elements(row);
            if elements.is_empty() {
                definitions.push(0);
                repetitions.push(0);
            }
            for (number, element) in elements.into_iter().enumerate() {
                repetitions.push(i16::from(number > 0));
                definitions.push(if element.is_some() { full } else { full - 1 });
                values.extend(element.map(|text| array(text)));
            }
        }

        self.write::<ByteArrayType>(&values, Some(&definitions), Some(&repetitions))
    }
}
