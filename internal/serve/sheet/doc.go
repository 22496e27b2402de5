// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package sheet has workbooks of Kubernetes objects: their model, their .xlsx files, and
// the values of their formulas.
//
// # Changes
//
// A file has, in a hidden worksheet, the values that were read ([File], link.go). A cell that
// has another value is an edit ([File.Edits]), and [Patch] has the rule of its JSON Patch,
// which the page follows, too: test the value that was read, then change it. The new value has
// the type of the old one. Read-only are the status, the metadata except labels and
// annotations, and whole objects and arrays. [File.Refresh] writes the objects as they are now
// and keeps everything of the user's.
//
// # Formulas
//
// A formula may have the functions in functions.json. testdata/formulas.json has cases of
// each, on whose values LibreOffice and excelize, which computes them here, agree; the
// page computes the same cases with IronCalc. Beyond these cases excelize is not always
// right: an error among the cells of SUM is ignored, and a blank cell does not equal "".
// Therefore a value that is applied to a cluster is compared with the one that
// the program computed which saved the file.
package sheet
