// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package sheet has workbooks of Kubernetes objects: their model, their .xlsx files, and
// the values of their formulas.
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
